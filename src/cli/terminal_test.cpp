#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

TEST(Harmless, TextStaysAsItIs) {
  EXPECT_EQ(harmless("a\tb\n\u00e9 \u4e16 \U0001f600"), "a\tb\n\u00e9 \u4e16 \U0001f600");
}

TEST(Harmless, WhatTheTerminalWouldObeyIsReplaced) {
  EXPECT_EQ(harmless("\x1b]0;title\x07"), "\ufffd]0;title\ufffd");
  EXPECT_EQ(harmless("\u009b2J"), "\ufffd2J") << "one character that is ESC [";
  EXPECT_EQ(harmless("\r\x7f"), "\ufffd\ufffd");
  EXPECT_EQ(harmless("\xc2"), "\xc2") << "the half of a character is the terminal's business";
}

TEST(Paint, IsNothingWhereThereAreNoColours) {
  EXPECT_EQ(Paint(false).red, "");
  EXPECT_NE(Paint(true).red, "");
  EXPECT_FALSE(shows_colours(-1));
}

}  // namespace
}  // namespace chasqui::cli
