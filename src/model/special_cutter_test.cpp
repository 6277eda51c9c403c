#include "model/special_cutter.h"

#include <string>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::string many_times(std::string_view text, std::size_t times) {
  std::string out;
  while (times-- > 0) out += text;
  return out;
}

TEST(SpecialCutter, ATextWithFewSpecialTokensIsOnePiece) {
  SpecialCutter cutter;
  EXPECT_EQ(cutter.next_cut("anything"), 8u);
  cutter.add("<s>", true);
  EXPECT_EQ(cutter.next_cut(""), 0u);
  EXPECT_EQ(cutter.next_cut("a<s>b<s>"), 8u);
}

TEST(SpecialCutter, PiecesBeginWithASpecialTokenAndHoldAtMostTheirNumber) {
  SpecialCutter cutter;
  cutter.add("<s>", true);
  const std::string text = many_times("ab<s>c", 1000);
  std::string_view rest = text;
  std::size_t pieces = 0;
  while (!rest.empty()) {
    const std::size_t cut = cutter.next_cut(rest);
    ASSERT_GT(cut, 0u);
    EXPECT_LE(cut, SpecialCutter::kSpecialsPerPiece * 6 + 6);
    rest.remove_prefix(cut);
    ++pieces;
    EXPECT_TRUE(rest.empty() || rest.starts_with("<s>"));
  }
  EXPECT_GE(pieces, 1000 / SpecialCutter::kSpecialsPerPiece);
}

TEST(SpecialCutter, DoesNotCutInsideALongerTokenOrBeforeOneThatStrips) {
  SpecialCutter cutter;
  cutter.add("<s>", true);
  cutter.add("x<s>y", true);
  // Every <s> is the middle of a longer token: the cut is before the x.
  const std::string text = many_times("x<s>y", 400);
  EXPECT_EQ(cutter.next_cut(text), 5 * SpecialCutter::kSpecialsPerPiece);

  SpecialCutter stripping;
  stripping.add("<s>", false);
  const std::string all = many_times(" <s>", 400);
  EXPECT_EQ(stripping.next_cut(all), all.size());
}

TEST(SpecialCutter, LongRunsAreCutWhereNoCharacterAndNoSpecialTokenIs) {
  constexpr std::size_t kMost = SpecialCutter::kRunBytes;
  SpecialCutter whole, cutter;
  cutter.add("<end>", true);
  cutter.cut_runs();
  for (const std::string unit : {"a", "7", "!", " ", "/\n", "\u00e9", "\u597d", "a+/"}) {
    std::string text;
    while (text.size() < 3 * kMost) text += unit;
    EXPECT_EQ(whole.next_cut(text), text.size()) << "only where it is told to";
    const std::size_t cut = cutter.next_cut(text);
    EXPECT_GE(cut, kMost) << unit;
    EXPECT_LT(cut, kMost + 4) << unit;
    EXPECT_NE(static_cast<unsigned char>(text[cut]) & 0xC0, 0x80) << "within a character";
  }
  std::string words;
  while (words.size() < 3 * kMost) words += "a word, ";
  EXPECT_EQ(cutter.next_cut(words), words.size());
  const std::string before(kMost - 2, 'a');
  EXPECT_EQ(cutter.next_cut(before + "<end>" + before), before.size() * 2 + 5) << "a special token ends a run";
  EXPECT_EQ(cutter.next_cut(before + "aa<en" + before), kMost);
}

}  // namespace
}  // namespace chasqui
