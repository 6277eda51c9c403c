#include "record/stand_ins.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr StandIns::Secret kSecret{1, 2};

std::vector<Token> stand_ins(const std::vector<Token>& text, StandIns::Secret secret = kSecret) {
  const StandIns names(secret);
  StandIns::Place place = names.begin();
  std::vector<Token> out;
  for (const Token token : text) out.push_back(names.next(place, token));
  return out;
}

TEST(StandIns, TextsPartWhereTheirTokensDo) {
  const std::vector<Token> first = stand_ins({5, 6, 7, 8, 9});
  const std::vector<Token> second = stand_ins({5, 6, 1, 8, 9});
  EXPECT_EQ(first, stand_ins({5, 6, 7, 8, 9}));
  EXPECT_EQ(first[0], second[0]);
  EXPECT_EQ(first[1], second[1]);
  for (std::size_t i = 2; i < first.size(); ++i) EXPECT_NE(first[i], second[i]) << i;
}

TEST(StandIns, TokensAtOnePlaceDifferAndKeepTheirOrder) {
  Token before = -1;
  for (Token token = 0; token < 300'000; token += 7) {
    const Token now = stand_ins({42, token})[1];
    ASSERT_GT(now, before) << token;
    before = now;
  }
}

TEST(StandIns, TheSameTokenHasAnotherOneEachTime) {
  const std::vector<Token> out = stand_ins(std::vector<Token>(1000, 3));
  EXPECT_EQ(std::set<Token>(out.begin(), out.end()).size(), out.size());
}

TEST(StandIns, AnotherSecretAnotherNumber) {
  EXPECT_NE(stand_ins({5, 6, 7}), stand_ins({5, 6, 7}, {1, 3}));
  EXPECT_NE(StandIns::new_secret().first, StandIns::new_secret().first);
}

TEST(StandIns, WhatIsNoTokenStays) { EXPECT_EQ(stand_ins({5, -1, 6})[1], -1); }

TEST(StandIns, NamesThatMeanSomethingStay) {
  const StandIns names(kSecret);
  EXPECT_EQ(names.of_name(0), 0u);
  EXPECT_EQ(names.of_name(1), 1u);
  EXPECT_NE(names.of_name(77), 77u);
  EXPECT_EQ(names.of_name(77), names.of_name(77));
  EXPECT_NE(names.of_name(77), names.of_name(78));
  EXPECT_GT(names.of_name(77), 1u);
}

}  // namespace
}  // namespace chasqui
