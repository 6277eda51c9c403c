#include "engine/session_table.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

constexpr TimePoint kTableStart{};
constexpr Token kTableEnd = SimTokenizer::kImEnd;

class SessionTableTest : public testing::Test {
 protected:
  static SessionLimits limits() {
    SessionLimits limits;
    limits.tokens = 20;
    limits.sessions = 5;
    return limits;
  }
  ~SessionTableTest() override { EXPECT_TRUE(table_.consistent()); }

  SessionId create(std::uint32_t tenant = 1, std::vector<Token> tokens = {1, 2, 3}, Duration ttl = seconds(100)) {
    SessionSettings settings;
    settings.ttl = ttl;
    auto made = table_.create({tenant, 0}, settings, {std::move(tokens), nullptr}, now_);
    EXPECT_TRUE(made);
    return (*made)->id;
  }
  const Session& at(const SessionId& id, std::uint32_t tenant = 1) const { return **table_.find(tenant, id); }
  ErrorCode refusal(const auto& result) const {
    EXPECT_FALSE(result);
    return result ? ErrorCode::internal : result.error().code;
  }
  // Begins a generation as the request `request`.
  void begin(const SessionId& id, std::uint64_t request, SessionDelta before = {}) {
    auto use = table_.take(1, id, now_);
    ASSERT_TRUE(use);
    use->begin(RequestId{request}, std::move(before));
  }
  void finish(std::uint64_t request, std::vector<Token> generated) {
    Event event;
    event.request = RequestId{request};
    event.kind = Event::Kind::finished;
    event.generated = std::move(generated);
    table_.finished(event, now_);
  }

  const SimTokenizer tokenizer_;
  SessionTable table_{limits(), tokenizer_};
  TimePoint now_ = kTableStart;
};

TEST_F(SessionTableTest, KeepsExactlyWhatWasAppendedAndGenerated) {
  const SessionId id = create(1, {1, 2});
  auto use = table_.take(1, id, now_);
  ASSERT_TRUE(use);
  ASSERT_TRUE(use->append({{3, 4}, nullptr}, now_));
  EXPECT_EQ(at(id).state, Session::State::idle);
  begin(id, 7, {{5}, nullptr});
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 3, 4})) << "the history of before, while it generates";
  EXPECT_EQ(at(id).state, Session::State::generating);
  finish(7, {100, 101, kTableEnd});
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 3, 4, 5, 100, 101, kTableEnd}));
  EXPECT_EQ(at(id).state, Session::State::idle);
  EXPECT_EQ(table_.metrics().tokens.value(), 8);
}

TEST_F(SessionTableTest, WhatCouldNotBeKeptIsTakenBack) {
  const SessionId id = create(1, {1, 2});
  SessionMark before = mark_of(at(id));
  ASSERT_TRUE(table_.take(1, id, now_)->append({{3, 4}, nullptr}, now_));
  table_.take_back(before);
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2}));
  EXPECT_EQ(table_.metrics().tokens.value(), 2);

  before = mark_of(at(id));
  begin(id, 7, {{5}, nullptr});
  table_.take_back(before);
  EXPECT_EQ(at(id).state, Session::State::generating) << "nothing has changed yet";
  finish(7, {100, kTableEnd});
  table_.take_back(before);
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2}));
  table_.take_back(before);
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2})) << "once is enough";
}

TEST_F(SessionTableTest, WhatOthersHaveBuiltOnIsNotTakenBack) {
  const SessionId id = create(1, {1, 2});
  const SessionMark before = mark_of(at(id));
  ASSERT_TRUE(table_.take(1, id, now_)->append({{3}, nullptr}, now_));
  {
    auto use = table_.take(1, id, now_);
    table_.take_back(before);
    EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 3})) << "a request is about to";
    ASSERT_TRUE(use->append({{4}, nullptr}, now_));
  }
  table_.take_back(before);
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 3, 4}));
  EXPECT_TRUE(table_.end(1, id));
  table_.take_back(before);
}

TEST_F(SessionTableTest, AGenerationWithoutATokenLeavesTheHistoryAsItWas) {
  const SessionId id = create(1, {1, 2});
  begin(id, 7, {{5}, nullptr});
  finish(7, {});
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2}));
  EXPECT_EQ(at(id).state, Session::State::idle);
}

TEST_F(SessionTableTest, ARequestWhileItIsInUseGetsAConflict) {
  const SessionId id = create();
  {
    auto use = table_.take(1, id, now_);
    ASSERT_TRUE(use);
    EXPECT_EQ(refusal(table_.take(1, id, now_)), ErrorCode::conflict);
    EXPECT_TRUE(table_.find(1, id)) << "but it can be looked at";
  }
  begin(id, 7);
  EXPECT_EQ(refusal(table_.take(1, id, now_)), ErrorCode::conflict);
  finish(7, {100});
  EXPECT_TRUE(table_.take(1, id, now_)) << "given back by its end, and this one by going";
  EXPECT_TRUE(table_.take(1, id, now_));
}

TEST_F(SessionTableTest, ASpentUseGivesNothingBackThatAnotherHas) {
  const SessionId id = create();
  auto first = table_.take(1, id, now_);
  ASSERT_TRUE(first);
  first->begin(RequestId{7}, {});
  finish(7, {100});
  auto second = table_.take(1, id, now_);
  ASSERT_TRUE(second);
  { const SessionUse gone = std::move(*first); }
  EXPECT_EQ(at(id).state, Session::State::preparing);
}

TEST_F(SessionTableTest, AnotherTenantSeesNothing) {
  const SessionId id = create(1);
  create(2);
  EXPECT_EQ(refusal(table_.find(2, id)), ErrorCode::not_found);
  EXPECT_EQ(refusal(table_.take(2, id, now_)), ErrorCode::not_found);
  EXPECT_EQ(refusal(table_.fork({2, 0}, id, 0, now_)), ErrorCode::not_found);
  EXPECT_EQ(refusal(table_.cancel(2, id, now_)), ErrorCode::not_found);
  EXPECT_EQ(refusal(table_.end(2, id)), ErrorCode::not_found);
  EXPECT_EQ(table_.list(2, 9).size(), 1u);
  ASSERT_EQ(table_.list(1, 9).size(), 1u);
  EXPECT_EQ(table_.list(1, 9)[0]->id, id);
}

TEST_F(SessionTableTest, AreListedInPagesOldestFirst) {
  std::vector<SessionId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(create(1));
  create(2);
  ASSERT_TRUE(table_.end(1, ids[1]));
  const auto first = table_.list(1, 2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0]->id, ids[0]);
  EXPECT_EQ(first[1]->id, ids[2]);
  const auto rest = table_.list(1, 2, first[1]);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0]->id, ids[3]);
}

TEST_F(SessionTableTest, IdsAreLongAndDiffer) {
  SessionLimits many;
  many.tokens = 1;
  SessionTable table(many, tokenizer_);
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert((*table.create({}, {}, {}, now_))->id.text);
  EXPECT_EQ(ids.size(), 100u);
  for (const std::string& id : ids) {
    EXPECT_TRUE(id.starts_with("sess_"));
    EXPECT_EQ(id.size(), 37u);
  }
}

TEST_F(SessionTableTest, AForkHasTheHistoryAndALifeOfItsOwn) {
  const SessionId id = create(1, {1, 2});
  begin(id, 7, {{5}, nullptr});
  const auto fork = table_.fork({1, 0}, id, 9, now_);
  ASSERT_TRUE(fork);
  const SessionId other = (*fork)->id;
  EXPECT_EQ(at(other).tokens, (std::vector<Token>{1, 2})) << "of the parent, before it began to generate";
  EXPECT_EQ(at(other).state, Session::State::idle);
  EXPECT_EQ(at(other).settings.created, 9);
  begin(other, 8);
  finish(7, {100});
  EXPECT_EQ(at(other).state, Session::State::generating);
  finish(8, {200});
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 5, 100}));
  EXPECT_EQ(at(other).tokens, (std::vector<Token>{1, 2, 200}));
  ASSERT_TRUE(table_.end(1, id));
  EXPECT_TRUE(table_.find(1, other));
}

TEST_F(SessionTableTest, ACancelNamesTheRequestAndKeepsWhatWasGenerated) {
  const SessionId id = create(1, {1});
  EXPECT_EQ(*table_.cancel(1, id, now_), std::nullopt) << "nothing to cancel is no error";
  begin(id, 7);
  EXPECT_EQ(*table_.cancel(1, id, now_), RequestId{7});
  finish(7, {100, 101});
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 100, 101}));
}

TEST_F(SessionTableTest, ACancelWhileAGenerationIsPreparedKeepsItFromBeginning) {
  const SessionId id = create();
  {
    auto use = table_.take(1, id, now_);
    ASSERT_TRUE(use);
    EXPECT_TRUE(use->still_wanted());
    ASSERT_TRUE(table_.cancel(1, id, now_));
    EXPECT_EQ(refusal(use->still_wanted()), ErrorCode::conflict);
  }
  auto next = table_.take(1, id, now_);
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->still_wanted()) << "it was for that one only";
}

TEST_F(SessionTableTest, EndedWhileInUseItGoesWhenThatIsOver) {
  const SessionId id = create();
  begin(id, 7);
  EXPECT_EQ(*table_.end(1, id), RequestId{7});
  EXPECT_EQ(refusal(table_.find(1, id)), ErrorCode::not_found);
  EXPECT_EQ(refusal(table_.end(1, id)), ErrorCode::not_found);
  EXPECT_TRUE(table_.list(1, 9).empty());
  EXPECT_EQ(table_.size(), 1u);
  finish(7, {100});
  EXPECT_EQ(table_.size(), 0u);

  const SessionId other = create();
  {
    auto use = table_.take(1, other, now_);
    ASSERT_TRUE(use);
    EXPECT_EQ(*table_.end(1, other), std::nullopt);
    EXPECT_EQ(refusal(use->still_wanted()), ErrorCode::not_found);
    EXPECT_EQ(refusal(use->append({{1}, nullptr}, now_)), ErrorCode::not_found);
  }
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(SessionTableTest, UnusedSessionsExpireAndThoseInUseDoNot) {
  const SessionId shorter = create(1, {1}, seconds(10));
  const SessionId longer = create(1, {1}, seconds(20));
  const SessionId busy = create(1, {1}, seconds(10));
  begin(busy, 7);
  now_ += seconds(10);
  table_.expire(now_ - Duration(1));
  EXPECT_EQ(table_.size(), 3u);
  table_.expire(now_);
  EXPECT_EQ(refusal(table_.find(1, shorter)), ErrorCode::not_found);
  EXPECT_TRUE(table_.find(1, longer));
  EXPECT_TRUE(table_.find(1, busy));
  finish(7, {100});
  now_ += seconds(9);
  table_.expire(now_);
  EXPECT_TRUE(table_.find(1, busy)) << "its time counts from the end of its use";
  now_ += seconds(1);
  table_.expire(now_);
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_EQ(table_.metrics().expired.value(), 3u);
}

TEST_F(SessionTableTest, AForkAndACancelAreUses) {
  const SessionId forked = create(1, {1}, seconds(10));
  const SessionId cancelled = create(1, {1}, seconds(10));
  const SessionId seen = create(1, {1}, seconds(10));
  now_ += seconds(9);
  ASSERT_TRUE(table_.fork({1, 0}, forked, 0, now_));
  ASSERT_TRUE(table_.cancel(1, cancelled, now_));
  ASSERT_TRUE(table_.find(1, seen));
  now_ += seconds(9);
  table_.expire(now_);
  EXPECT_TRUE(table_.find(1, forked));
  EXPECT_TRUE(table_.find(1, cancelled));
  EXPECT_FALSE(table_.find(1, seen)) << "to look at it is none";
}

TEST_F(SessionTableTest, LimitsAreSaid) {
  EXPECT_EQ(refusal(table_.create({1, 0}, {}, {std::vector<Token>(21), nullptr}, now_)), ErrorCode::context_too_long);
  const SessionId id = create(1, std::vector<Token>(19));
  {
    auto use = table_.take(1, id, now_);
    ASSERT_TRUE(use);
    EXPECT_EQ(refusal(use->append({std::vector<Token>(2), nullptr}, now_)), ErrorCode::context_too_long);
    EXPECT_TRUE(use->append({std::vector<Token>(1), nullptr}, now_)) << "still taken after the refusal";
  }
  EXPECT_EQ(refusal(table_.create({1, 1}, {}, {}, now_)), ErrorCode::quota_exceeded);
  EXPECT_EQ(refusal(table_.fork({1, 1}, id, 0, now_)), ErrorCode::quota_exceeded);
  EXPECT_TRUE(table_.create({2, 1}, {}, {}, now_)) << "another tenant has its own share";
  for (std::uint32_t tenant = 3; tenant < 6; ++tenant) create(tenant);
  EXPECT_EQ(refusal(table_.create({6, 0}, {}, {}, now_)), ErrorCode::overloaded);
  EXPECT_EQ(refusal(table_.fork({1, 0}, id, 0, now_)), ErrorCode::overloaded);
  ASSERT_TRUE(table_.end(1, id));
  EXPECT_TRUE(table_.check_place({1, 1}));
}

TEST_F(SessionTableTest, MessagesAndTheirTextAreLimited) {
  ChatHistory wordy;
  wordy.bytes = limits().text_bytes_max() + 1;
  const auto too_wordy = std::make_shared<const ChatHistory>(wordy);
  EXPECT_EQ(refusal(table_.create({}, {}, {{1}, too_wordy}, now_)), ErrorCode::invalid_request);
  ChatHistory many;
  many.messages.resize(limits().messages + 1);
  const auto too_many = std::make_shared<const ChatHistory>(many);
  EXPECT_EQ(refusal(table_.create({}, {}, {{1}, too_many}, now_)), ErrorCode::invalid_request);
}

TEST_F(SessionTableTest, AnAnswerJoinsTheConversation) {
  const SessionId id = create();
  ChatMessage question;
  question.role = "user";
  const auto asked = std::make_shared<const ChatHistory>(with_messages({}, {question}));
  begin(id, 7, {{5}, asked});
  std::vector<Token> said = tokenizer_.tokenize("Hi there", AddSpecial::no, ParseSpecial::no);
  said.push_back(kTableEnd);
  finish(7, said);
  EXPECT_EQ(at(id).chat->messages.back()->content, "Hi there");
  EXPECT_EQ(at(id).chat->end, ChatHistory::End::ended_answer);
  EXPECT_EQ(at(id).chat->end_text, "<|im_end|>");
  begin(id, 8, {{}, at(id).chat});
  finish(8, {0xC3});
  EXPECT_EQ(at(id).chat->end, ChatHistory::End::open_answer);
  EXPECT_EQ(at(id).chat->messages.back()->content, "") << "half a character is no text";
  begin(id, 9, {{}, at(id).chat});
  finish(9, {0xA9});
  EXPECT_EQ(at(id).chat->messages.back()->content, "é") << "its other half makes it one";
}

// Any order of commands keeps the promises: one use at a time, nothing lost, nothing left behind.
TEST_F(SessionTableTest, RandomCommandsKeepItConsistent) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    SessionTable table(limits(), tokenizer_);
    std::vector<SessionId> ids;
    std::vector<RequestId> running;
    std::vector<SessionUse> uses;
    std::uint64_t last_request = 0;
    TimePoint now = kTableStart;
    const auto below = [&random](std::size_t n) {
      return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    for (int i = 0; i < 400; ++i) {
      const SessionId id = ids.empty() ? SessionId{} : ids[below(ids.size())];
      switch (below(9)) {
        case 0:
          if (auto made = table.create({1, 0}, {ServiceClass::standard, seconds(50), 0}, {{1}, nullptr}, now)) {
            ids.push_back((*made)->id);
          }
          break;
        case 1:
          if (auto use = table.take(1, id, now)) uses.push_back(std::move(*use));
          break;
        case 2:
          if (uses.empty()) break;
          if (auto appended = uses.back().append({{2}, nullptr}, now)) uses.pop_back();
          break;
        case 3:
          if (uses.empty()) break;
          if (uses.back().still_wanted()) uses.back().begin(running.emplace_back(RequestId{++last_request}), {});
          uses.pop_back();
          break;
        case 4: {
          if (running.empty()) break;
          Event event;
          event.request = running.back();
          event.generated = {3};
          running.pop_back();
          table.finished(event, now);
          break;
        }
        case 5:
          if (auto fork = table.fork({1, 0}, id, 0, now)) ids.push_back((*fork)->id);
          break;
        case 6: static_cast<void>(table.cancel(1, id, now)); break;
        case 7:
          if (below(3) == 0) static_cast<void>(table.end(1, id));
          break;
        default: now += seconds(static_cast<std::int64_t>(below(10))); table.expire(now);
      }
      ASSERT_TRUE(table.consistent()) << "seed " << seed << ", command " << i;
    }
    uses.clear();
    for (const RequestId request : running) {
      Event event;
      event.request = request;
      table.finished(event, now);
    }
    table.expire(now + seconds(1000));
    EXPECT_EQ(table.size(), 0u) << "seed " << seed;
    EXPECT_TRUE(table.consistent());
  }
}

}  // namespace
}  // namespace chasqui
