#include "sched/forced_rows.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

class ForcedRowsTest : public ::testing::Test {
 protected:
  // A sequence that decodes, with so many forced tokens that are not computed.
  const Sequence* add(TokenCount forced) {
    RequestDraft draft;
    draft.prompt = test_prompt(10, 1);
    draft.max_tokens = 200;
    draft.sampling.seed = 1;
    auto sequence = std::make_unique<Sequence>(test_request(sequences_.size() + 1, std::move(draft)));
    sequence->start(SlotId{static_cast<std::int32_t>(sequences_.size())}, TimePoint{});
    sequence->computed_rows(10, TimePoint{});
    sequence->add_token(7, TimePoint{});
    for (TokenCount i = 0; i < forced; ++i) sequence->add_forced_token(8 + i, TimePoint{});
    decoding_.push_back(sequence.get());
    sequences_.push_back(std::move(sequence));
    return decoding_.back();
  }
  // Steps that take so long, and for each row so much more.
  void learn(Duration step, Duration row, std::initializer_list<TokenCount> sizes) {
    for (int i = 0; i < 20; ++i) {
      for (const TokenCount rows : sizes) times_.observe(Batch::Kind::decode, {rows, 20}, step + rows * row);
    }
  }
  TokenCount width(ForcedRoom room) { return forced_width(decoding_, times_, room); }

  static constexpr ForcedRoom kRoom{
      .rows = 512, .cells_per_slot = 400, .even = true, .fixed = false, .time = seconds(1)};
  StepTime times_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<const Sequence*> decoding_;
};

TEST_F(ForcedRowsTest, IsOneWhereNothingIsForced) {
  add(0);
  add(0);
  learn(milliseconds(10), microseconds(1), {1, 2, 4, 8});
  EXPECT_EQ(width(kRoom), 1);
}

TEST_F(ForcedRowsTest, IsAllWhereRowsCostLittle) {
  add(5);
  add(0);
  learn(milliseconds(10), microseconds(10), {1, 2, 4, 6, 8, 10, 12});
  EXPECT_EQ(width(kRoom), 6);
}

TEST_F(ForcedRowsTest, IsOneWhereRowsOfNoUseCostMoreThanTheyBring) {
  add(3);
  for (int i = 0; i < 7; ++i) add(0);
  learn(milliseconds(1), milliseconds(5), {1, 8, 16, 24, 32});
  EXPECT_EQ(width(kRoom), 1);
  ForcedRoom uneven = kRoom;
  uneven.even = false;
  learn(milliseconds(40), milliseconds(1), {1, 8, 9, 10, 11});
  EXPECT_EQ(width(uneven), 4) << "the others get no rows for it";
}

TEST_F(ForcedRowsTest, KeepsToTheTimeOfTheStepAndToItsRoom) {
  add(20);
  learn(milliseconds(10), milliseconds(1), {1, 2, 4, 6, 8, 10, 12, 16, 20});
  ForcedRoom room = kRoom;
  EXPECT_GT(width(room), 15);
  room.time = milliseconds(16);
  EXPECT_LE(width(room), 6);
  EXPECT_GT(width(room), 1);
  room = kRoom;
  room.rows = 4;
  EXPECT_EQ(width(room), 4);
  room = kRoom;
  room.cells_per_slot = 13;
  EXPECT_EQ(width(room), 3);
}

TEST_F(ForcedRowsTest, FollowsNoTimesWhereItIsFixed) {
  add(6);
  ForcedRoom room = kRoom;
  EXPECT_EQ(width(room), 1) << "nothing is known";
  room.fixed = true;
  EXPECT_EQ(width(room), 7);
  learn(milliseconds(1), milliseconds(50), {1, 2, 4, 7, 8});
  EXPECT_EQ(width(room), 7);
}

}  // namespace
}  // namespace chasqui
