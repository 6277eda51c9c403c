#include "cli/word_wrap.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

// In pieces of every size the result is the same.
std::string wrapped(std::string_view text, std::size_t columns) {
  std::string first;
  for (std::size_t size = 1; size <= text.size(); ++size) {
    WordWrap wrap(columns);
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) out += wrap.feed(text.substr(at, size));
    out += wrap.end();
    if (size == 1) first = out;
    EXPECT_EQ(out, first) << "in pieces of " << size;
  }
  return first;
}

TEST(WordWrap, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("a long answer of words", 10), "a long\nanswer of\nwords");
  EXPECT_EQ(wrapped("ten digits and", 10), "ten digits\nand") << "a full line is no broken one";
}

TEST(WordWrap, KeepsLinesAndIndentation) {
  EXPECT_EQ(wrapped("one\n\n  - two  three\n", 40), "one\n\n  - two  three\n");
}

TEST(WordWrap, LeavesWordsThatAreLongerThanALineToTheTerminal) {
  EXPECT_EQ(wrapped("see 0123456789abcdef x", 8), "see\n01234567\n89abcdef\nx");
}

TEST(WordWrap, CountsCharactersAndNotBytes) { EXPECT_EQ(wrapped("größe größe größe", 11), "größe größe\ngröße"); }

TEST(WordWrap, ColoursTakeNoRoom) {
  EXPECT_EQ(wrapped("\x1b[1mten\x1b[0m digits and", 10), "\x1b[1mten\x1b[0m digits\nand");
  EXPECT_EQ(wrapped("\x1b[2m```\x1b[0m\nint a  = 1 + 2;\n\x1b[2m```\x1b[0m\n", 8),
            "\x1b[2m```\x1b[0m\nint a  = 1 + 2;\n\x1b[2m```\x1b[0m\n");
}

TEST(WordWrap, LeavesFencedCodeAsItIs) {
  EXPECT_EQ(wrapped("```\nint a  = 1 + 2 + 3;\n```\nand words go on", 8),
            "```\nint a  = 1 + 2 + 3;\n```\nand\nwords go\non");
}

}  // namespace
}  // namespace chasqui::cli
