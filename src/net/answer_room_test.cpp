#include "net/answer_room.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

constexpr std::size_t kLarge = 1024 * 1024;
constexpr AnswerOwner kAlone{0, true};

TEST(AnswerRoom, IsBoundedAltogether) {
  AnswerRoom room(4 * kLarge);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(room.take(kAlone, kLarge));
  EXPECT_FALSE(room.take(kAlone, kLarge));
  room.give_back(kAlone, kLarge);
  EXPECT_TRUE(room.take(kAlone, kLarge));
}

TEST(AnswerRoom, IsSharedByOwners) {
  AnswerRoom room(8 * kLarge);
  EXPECT_TRUE(room.take({1}, kLarge));
  EXPECT_TRUE(room.take({1}, kLarge));
  EXPECT_FALSE(room.take({1}, kLarge)) << "more than a fourth";
  EXPECT_TRUE(room.take({2}, kLarge)) << "another one has its own";
}

TEST(AnswerRoom, AnswersWithoutABodyHoldNothing) {
  AnswerRoom room(kLarge);
  EXPECT_TRUE(room.take({1}, 0));
  EXPECT_TRUE(room.take({1}, 0));
  room.give_back({1}, 0);
  room.give_back({1}, 0);
  EXPECT_EQ(room.bytes(), 0u);
}

TEST(AnswerRoom, LetsSmallAnswersAndASingleLargeOnePass) {
  AnswerRoom room(kLarge);
  EXPECT_TRUE(room.take({1}, 100 * kLarge));
  EXPECT_FALSE(room.take({2}, kLarge));
  EXPECT_TRUE(room.take({2}, AnswerRoom::kSmall));
  EXPECT_EQ(room.bytes(), 100 * kLarge + AnswerRoom::kSmall);
  room.give_back({1}, 100 * kLarge);
  room.give_back({2}, AnswerRoom::kSmall);
  EXPECT_EQ(room.bytes(), 0u);
}

}  // namespace
}  // namespace chasqui::net
