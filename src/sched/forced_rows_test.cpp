#include "sched/forced_rows.h"

#include <gtest/gtest.h>

#include "sched/fake_sequences.h"

namespace chasqui {
namespace {

class ForcedRowsTest : public ::testing::Test {
 protected:
  // A sequence that decodes, with so many forced tokens that are not computed.
  const Sequence* add(TokenCount forced) {
    Sequence& sequence = sequences_.add(test_prompt(10, 1));
    for (TokenCount i = 0; i < forced; ++i) sequence.add_forced_token(8 + i, TimePoint{});
    return &sequence;
  }
  // Steps that take so long, and for each row so much more.
  void learn(Duration step, Duration row, std::initializer_list<TokenCount> sizes) {
    for (int i = 0; i < 20; ++i) {
      for (const TokenCount rows : sizes) times_.observe(Batch::Kind::decode, {rows, 20}, step + rows * row);
    }
  }
  TokenCount width(ForcedRoom room) { return forced_width(sequences_.decoding(), times_, room); }

  static constexpr ForcedRoom kRoom{
      .rows = 512, .cells_per_slot = 400, .even = true, .fixed = false, .time = seconds(1)};
  StepTime times_;
  FakeSequences sequences_;
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

TEST_F(ForcedRowsTest, TakesLittleTimeOfASequenceThatHasNothingForced) {
  add(20);
  learn(milliseconds(10), milliseconds(1), {1, 2, 3, 4, 6, 8, 10, 12, 16, 21, 22});
  ForcedRoom room = kRoom;
  room.even = false;
  EXPECT_GT(width(room), 15);
  add(0);
  EXPECT_EQ(width(room), 3) << "12 ms become 14";
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
