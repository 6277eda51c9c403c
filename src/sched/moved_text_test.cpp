#include "sched/moved_text.h"

#include <string_view>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::vector<Token> tokens(std::string_view text) { return {text.begin(), text.end()}; }

// What the slot holds when all is done.
std::vector<Token> moved(std::vector<Token> held, const MovedText& text) {
  held.resize(static_cast<std::size_t>(text.end));
  for (const auto& [from, to] : text.gaps) held.erase(held.begin() + from, held.begin() + to);
  return held;
}

MovedText find(std::string_view held, std::string_view prompt, TokenCount chunk, std::size_t budget = 1000) {
  const MovedText text = find_moved_text(tokens(held), tokens(prompt), chunk, budget);
  EXPECT_EQ(moved(tokens(held), text), tokens(prompt.substr(0, static_cast<std::size_t>(text.length)))) << prompt;
  return text;
}

TEST(MovedText, IsFoundBehindWhatIsGone) {
  const MovedText text = find("head-one-two-three", "head-three!", 4);
  EXPECT_EQ(text.clean, 5);
  EXPECT_EQ(text.length, 10);
  EXPECT_EQ(find("head-one-two", "head-two", 3).length, 8);
  EXPECT_EQ(find("one-two-three", "two-three", 4).length, 9);
  EXPECT_EQ(find("one-two-three", "two-three", 4).clean, 0);
}

TEST(MovedText, MayComeInSeveralPieces) {
  const MovedText text = find("a1111b2222c3333d", "a2222c", 4);
  EXPECT_EQ(text.length, 6);
  const MovedText two = find("a1111x2222y3333z", "a11112222", 3);
  EXPECT_EQ(two.length, 9);
  EXPECT_EQ(two.gaps.size(), 1u);
  EXPECT_EQ(find("aXXXbbbbYYYYcccc", "abbbbcccc", 4).gaps.size(), 2u);
}

TEST(MovedText, IsNotFoundWhereItIsTooShortOrIsElsewhere) {
  EXPECT_EQ(find("a1111b2222", "a2222", 5).length, 1);
  EXPECT_EQ(find("a1111b2222", "a2222", 5).gaps.size(), 0u);
  EXPECT_EQ(find("ab", "ba", 2).length, 0);
  EXPECT_EQ(find("", "ab", 1).length, 0);
  EXPECT_EQ(find("same", "same", 1).length, 4);
}

TEST(MovedText, CostsWhatItMay) {
  std::size_t budget = 100;
  const std::vector<Token> held(10'000, 1);
  std::vector<Token> prompt(5000, 1);
  prompt[50] = 2;
  find_moved_text(held, prompt, 1000, budget);
  EXPECT_EQ(budget, 0u);
}

}  // namespace
}  // namespace chasqui
