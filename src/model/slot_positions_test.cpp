#include "model/slot_positions.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

MediaUnit unit(TokenCount begin, TokenCount places, TokenCount advance) {
  MediaUnit unit;
  unit.begin = begin;
  unit.positions = places;
  unit.advance = advance;
  return unit;
}

// 10 tokens, a picture of 6 × 4 parts, 5 tokens, one of 2 × 3.
SlotPositions two_pictures() {
  SlotPositions positions;
  positions.read(unit(10, 24, 6), 34);
  positions.read(unit(39, 6, 3), 45);
  return positions;
}

TEST(SlotPositions, TextAloneIsWhereItIs) {
  const SlotPositions positions;
  EXPECT_EQ(positions.position(0), 0);
  EXPECT_EQ(positions.position(70), 70);
  EXPECT_EQ(positions.places(-1), 0);
  EXPECT_EQ(positions.places(69), 70);
}

TEST(SlotPositions, WhatFollowsAPictureIsAsMuchFurtherOnAsItIsWide) {
  const SlotPositions positions = two_pictures();
  EXPECT_EQ(positions.position(10), 10) << "where the picture begins";
  EXPECT_EQ(positions.position(34), 16);
  EXPECT_EQ(positions.position(39), 21);
  EXPECT_EQ(positions.position(45), 24);
  EXPECT_EQ(positions.position(50), 29);
}

TEST(SlotPositions, TellHowManyPlacesASlotHas) {
  const SlotPositions positions = two_pictures();
  EXPECT_EQ(positions.places(28), 50);
  EXPECT_EQ(positions.places(24), 46);
  EXPECT_EQ(positions.places(21), 45) << "all of the picture lies on the position where it begins";
  SlotPositions half;
  half.read(unit(10, 24, 6), 20);
  EXPECT_EQ(half.places(10), 20);
  EXPECT_TRUE(half.has_read(10, 20));
  EXPECT_FALSE(half.has_read(10, 21));
  EXPECT_TRUE(half.ends_inside(20));
  half.read(unit(10, 24, 6), 34);
  EXPECT_EQ(half.places(10), 34) << "it goes on where it was";
  EXPECT_FALSE(half.ends_inside(34));
}

TEST(SlotPositions, ForgetPicturesThatAreCutOff) {
  SlotPositions positions = two_pictures();
  positions.trim(45);
  EXPECT_EQ(positions.position(50), 29);
  positions.trim(39);
  EXPECT_EQ(positions.position(50), 32);
  positions.trim(10);
  EXPECT_EQ(positions.position(50), 50);
}

TEST(SlotPositions, APictureIsNotCut) {
  const SlotPositions positions = two_pictures();
  for (const TokenCount whole : {5, 10, 34, 37, 39, 45, 60}) EXPECT_EQ(positions.whole(whole), whole);
  EXPECT_EQ(positions.whole(11), 10);
  EXPECT_EQ(positions.whole(33), 10);
  EXPECT_EQ(positions.whole(44), 39);
}

TEST(SlotPositions, ComeBackFromTheEndOfACopy) {
  const SlotPositions positions = two_pictures();
  std::vector<std::byte> copy(100 + positions.bytes());
  positions.write(std::span(copy).subspan(100));
  const auto back = SlotPositions::of_copy(copy);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->bytes(), positions.bytes());
  EXPECT_EQ(back->position(50), 29);
  EXPECT_EQ(back->places(21), 45);
}

TEST(SlotPositions, AreNotMadeOfOtherBytes) {
  EXPECT_FALSE(SlotPositions::of_copy({}));
  EXPECT_FALSE(SlotPositions::of_copy(std::vector<std::byte>(64, std::byte{0xff})));
  SlotPositions positions;
  positions.read(unit(10, 24, 6), 34);
  std::vector<std::byte> copy(positions.bytes());
  positions.write(copy);
  copy[8] = std::byte{30};  // further on than it has places
  EXPECT_FALSE(SlotPositions::of_copy(copy));
}

}  // namespace
}  // namespace chasqui
