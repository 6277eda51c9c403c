// Sessions of a model that another one replaces.
#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "engine/session_table.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

constexpr Token kEnd = SimTokenizer::kImEnd;
constexpr TimePoint kStart = TimePoint() + seconds(1000);

SessionLimits limits() {
  SessionLimits limits;
  limits.tokens = 20;
  return limits;
}

SessionId create(SessionTable& table) {
  SessionSettings settings;
  settings.ttl = seconds(100);
  return (*table.create({1, 0}, settings, {{1, 2, 3}, nullptr}, kStart))->id;
}

TEST(SessionVocabulary, SessionsGoOnWithAnotherModelOfTheirVocabularyAlone) {
  const SimTokenizer tokenizer;
  const SimTokenizer next;
  SessionTable table(limits(), tokenizer);
  const Checksum own{};
  Checksum other{};
  other[0] = std::byte{1};
  const SessionId id = create(table);
  auto use = table.take(1, id, kStart);
  ASSERT_TRUE(use);
  use->begin(RequestId{7}, {});
  table.use_model(limits(), next, other);
  Event event;
  event.request = RequestId{7};
  event.kind = Event::Kind::finished;
  event.generated = {100, kEnd};
  table.finished(event, kStart);
  EXPECT_EQ((*table.find(1, id))->tokens, (std::vector<Token>{1, 2, 3, 100, kEnd})) << "what ran ends as it began";
  EXPECT_EQ(table.take(1, id, kStart).error().code, ErrorCode::conflict);
  EXPECT_EQ(table.fork({1, 0}, id, 0, kStart).error().code, ErrorCode::conflict);
  const SessionId fresh = create(table);
  EXPECT_TRUE(table.take(1, fresh, kStart));
  table.use_model(limits(), tokenizer, own);
  EXPECT_TRUE(table.take(1, id, kStart));
  EXPECT_EQ(table.take(1, fresh, kStart).error().code, ErrorCode::conflict);
  EXPECT_TRUE(table.end(1, fresh)) << "it can still go";
  EXPECT_TRUE(table.consistent());
}

}  // namespace
}  // namespace chasqui
