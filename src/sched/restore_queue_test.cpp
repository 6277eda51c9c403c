#include "sched/restore_queue.h"

#include <utility>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class RestoreQueueTest : public testing::Test {
 protected:
  void push(std::uint64_t id, TokenCount keep) {
    queue_.push({RequestId{id}, SlotId{static_cast<std::int32_t>(id)}, nullptr, SlotId{9}, keep});
  }
  // Request, first token, end.
  using Piece = std::tuple<std::uint64_t, TokenCount, TokenCount>;
  std::vector<Piece> plan(TokenCount tokens) {
    Batch batch;
    complete_.clear();
    queue_.plan(tokens, 16, batch, complete_);
    std::vector<Piece> pieces;
    for (const SlotRestore& each : batch.restores) pieces.emplace_back(each.request.value, each.from, each.end());
    return pieces;
  }

  RestoreQueue queue_;
  std::vector<RestoreQueue::Coming> complete_;
};

TEST_F(RestoreQueueTest, GivesPiecesOfWholeBlocksInTheOrderOfRequests) {
  push(1, 100);
  push(2, 20);
  EXPECT_EQ(plan(70), (std::vector<Piece>{{1, 0, 64}}));
  EXPECT_TRUE(complete_.empty());
  EXPECT_EQ(plan(54), (std::vector<Piece>{{1, 64, 100}, {2, 0, 16}}));
  ASSERT_EQ(complete_.size(), 1u);
  EXPECT_EQ(complete_[0].request, RequestId{1});
  EXPECT_EQ(plan(0), (std::vector<Piece>{{2, 16, 20}})) << "one block at least";
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RestoreQueueTest, TellsHowMuchOfOneThatLeavesHasCome) {
  push(1, 100);
  push(2, 100);
  plan(32);
  EXPECT_EQ(queue_.remove(RequestId{1})->done, 32);
  EXPECT_EQ(queue_.remove(RequestId{2})->done, 0);
  EXPECT_FALSE(queue_.remove(RequestId{3}));
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace chasqui
