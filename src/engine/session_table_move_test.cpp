#include <gtest/gtest.h>

#include "engine/session_table.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

class SessionTableMoves : public testing::Test {
 protected:
  ~SessionTableMoves() override { EXPECT_TRUE(table_.consistent()); }

  SessionId create() { return (*table_.create({1, 0}, {.ttl = seconds(100)}, {{1, 2, 3}, nullptr}, now_))->id; }
  const Session& at(const SessionId& id) const { return **table_.find(1, id); }
  ErrorCode refusal(const auto& result) const {
    EXPECT_FALSE(result);
    return result ? ErrorCode::internal : result.error().code;
  }
  void begin(const SessionId& id, std::uint64_t request, SessionDelta before) {
    auto use = table_.take(1, id, now_);
    ASSERT_TRUE(use);
    use->begin(RequestId{request}, std::move(before));
  }
  void cancelled(std::uint64_t request, std::vector<Token> generated) {
    Event event;
    event.request = RequestId{request};
    event.kind = Event::Kind::finished;
    event.reason = FinishReason::cancelled;
    event.generated = std::move(generated);
    table_.finished(event, now_);
  }

  const SimTokenizer tokenizer_;
  SessionTable table_{{.tokens = 30, .sessions = 5}, tokenizer_};
  const TimePoint now_{};
};

TEST_F(SessionTableMoves, AnAnswerThatStopsToMoveLeavesNothingHere) {
  const SessionId id = create();
  begin(id, 7, {{4}, nullptr});
  EXPECT_FALSE(table_.let_move(id, RequestId{8}));
  ASSERT_TRUE(table_.let_move(id, RequestId{7}));
  EXPECT_EQ(refusal(table_.take_stopped(id, RequestId{7})), ErrorCode::conflict) << "it still runs";
  cancelled(7, {5, 6});
  EXPECT_EQ(refusal(table_.take(1, id, now_)), ErrorCode::conflict) << "no other command gets between";
  EXPECT_FALSE(table_.leave(id));
  { const auto use = table_.take_stopped(id, RequestId{7}); }
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 3}));
  EXPECT_TRUE(table_.leave(id));
}

TEST_F(SessionTableMoves, AnAnswerThatCouldNotMoveGoesOn) {
  const SessionId id = create();
  begin(id, 7, {{4}, nullptr});
  ASSERT_TRUE(table_.let_move(id, RequestId{7}));
  cancelled(7, {5, 6});
  auto use = table_.take_stopped(id, RequestId{7});
  ASSERT_TRUE(use && use->still_wanted());
  use->begin(RequestId{9}, {{4}, nullptr});
  table_.keep_stopped(id, RequestId{7}, now_);
  EXPECT_EQ(at(id).request, RequestId{9}) << "that of before is over";
  cancelled(9, {5, 6, 8});
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 3, 4, 5, 6, 8})) << "it is not moved any more";
}

TEST_F(SessionTableMoves, WhatNoNodeGoesOnWithStaysInTheSession) {
  const SessionId id = create();
  for (const bool first : {true, false}) {
    const std::size_t before = at(id).tokens.size();
    begin(id, 7, {{4}, nullptr});
    ASSERT_TRUE(table_.let_move(id, RequestId{7}));
    if (first) table_.keep_stopped(id, RequestId{7}, now_);
    cancelled(7, {5, 6});
    if (!first) table_.keep_stopped(id, RequestId{7}, now_);
    EXPECT_EQ(at(id).tokens.size(), before + 3);
    EXPECT_EQ(at(id).state, Session::State::idle);
  }
}

TEST_F(SessionTableMoves, ACancelOrAnEndDoesNotWaitForAMove) {
  const SessionId id = create();
  begin(id, 7, {{4}, nullptr});
  ASSERT_TRUE(table_.let_move(id, RequestId{7}));
  ASSERT_TRUE(table_.cancel(1, id, now_));
  cancelled(7, {5});
  EXPECT_EQ(refusal(table_.take_stopped(id, RequestId{7})), ErrorCode::conflict);
  EXPECT_EQ(at(id).tokens, (std::vector<Token>{1, 2, 3, 4, 5}));

  begin(id, 8, {{4}, nullptr});
  ASSERT_TRUE(table_.let_move(id, RequestId{8}));
  cancelled(8, {5});
  ASSERT_TRUE(table_.end(1, id));
  table_.keep_stopped(id, RequestId{8}, now_);
  EXPECT_FALSE(table_.has(id));
}

}  // namespace
}  // namespace chasqui
