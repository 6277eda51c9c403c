#include "api/core/idempotency_store.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

using State = IdempotencyStore::State;

const net::Sha256 kOne = net::sha256({"one"});
const net::Sha256 kTwo = net::sha256({"two"});
constexpr TimePoint kNow{};

IdempotencyStore::AnswerPtr answer(std::size_t bytes) {
  net::RecordedAnswer out;
  out.body.assign(bytes, 'x');
  return std::make_shared<const net::RecordedAnswer>(std::move(out));
}

TEST(IdempotencyStore, GivesTheAnswerAgainToTheSameRequestAlone) {
  IdempotencyStore store;
  EXPECT_EQ(store.begin({1, "a"}, kOne, kNow).state, State::fresh);
  EXPECT_EQ(store.begin({1, "a"}, kOne, kNow).state, State::running);
  EXPECT_EQ(store.begin({1, "a"}, kTwo, kNow).state, State::other_request);
  EXPECT_EQ(store.begin({2, "a"}, kTwo, kNow).state, State::fresh) << "another tenant's key is another key";
  store.keep({1, "a"}, answer(10), kNow);
  const auto found = store.begin({1, "a"}, kOne, kNow);
  ASSERT_EQ(found.state, State::answered);
  EXPECT_EQ(found.answer->body.size(), 10u);
  EXPECT_EQ(store.begin({1, "a"}, kTwo, kNow).state, State::other_request);
  EXPECT_EQ(store.metrics().replayed.value(), 1u);
}

TEST(IdempotencyStore, ARequestWithoutAnAnswerMayBeSentAgain) {
  IdempotencyStore store;
  store.begin({1, "a"}, kOne, kNow);
  store.forget({1, "a"});
  EXPECT_EQ(store.begin({1, "a"}, kTwo, kNow).state, State::fresh);
}

TEST(IdempotencyStore, ForgetsAfterItsTime) {
  IdempotencyStore store({.ttl = seconds(10)});
  store.begin({1, "a"}, kOne, kNow);
  store.keep({1, "a"}, answer(10), kNow);
  EXPECT_EQ(store.begin({1, "a"}, kOne, kNow + seconds(9)).state, State::answered);
  EXPECT_EQ(store.begin({1, "a"}, kOne, kNow + seconds(10)).state, State::fresh);
}

TEST(IdempotencyStore, KeepsToItsBounds) {
  IdempotencyStore store({.entries = 3, .bytes = 3000, .tenant_bytes = 2000, .ttl = seconds(10)});
  const auto add = [&](std::uint32_t tenant, const std::string& key, std::size_t bytes) {
    ASSERT_EQ(store.begin({tenant, key}, kOne, kNow).state, State::fresh);
    store.keep({tenant, key}, answer(bytes), kNow);
  };
  const auto has = [&](std::uint32_t tenant, const std::string& key) {
    const bool answered = store.begin({tenant, key}, kOne, kNow).state == State::answered;
    if (!answered) store.forget({tenant, key});
    return answered;
  };
  add(1, "a", 700);
  add(2, "a", 100);
  add(1, "b", 1100);
  EXPECT_FALSE(has(1, "a")) << "the tenant's oldest went";
  EXPECT_TRUE(has(2, "a"));
  EXPECT_TRUE(has(1, "b"));
  for (const char* const key : {"c", "d"}) add(3, key, 10);
  EXPECT_FALSE(has(2, "a")) << "the oldest of all went";
  EXPECT_EQ(store.metrics().answers.value(), 3);
  add(4, "huge", 5000);
  EXPECT_FALSE(has(4, "huge"));
  EXPECT_EQ(store.metrics().answers.value(), 3) << "what is too large for its tenant takes nothing from others";
}

}  // namespace
}  // namespace chasqui
