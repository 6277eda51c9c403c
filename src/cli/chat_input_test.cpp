#include "cli/chat_input.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

using Kind = ChatInput::Kind;

TEST(ChatInput, CommandsAreReadWithWhatFollowsThem) {
  EXPECT_EQ(read_input("/system Be brief. ").kind, Kind::system);
  EXPECT_EQ(read_input("/system Be brief. ").text, "Be brief.");
  EXPECT_EQ(read_input("/system").text, "");
  EXPECT_EQ(read_input("/save a b.json").text, "a b.json");
  EXPECT_EQ(read_input("/quit").kind, Kind::quit);
  EXPECT_EQ(read_input(" \t").kind, Kind::nothing);
}

TEST(ChatInput, WhatIsNoCommandSaysSo) {
  EXPECT_EQ(read_input("/nope").kind, Kind::mistake);
  EXPECT_NE(read_input("/nope").text.find("/nope"), std::string::npos);
  EXPECT_EQ(read_input("/save").kind, Kind::mistake);
  EXPECT_EQ(read_input("/stats now").kind, Kind::mistake);
}

TEST(ChatInput, TwoSlashesBeginAQuestionWithOne) {
  EXPECT_EQ(read_input("//etc/passwd?").kind, Kind::text);
  EXPECT_EQ(read_input("//etc/passwd?").text, "/etc/passwd?");
}

TEST(LineJoiner, ABackslashGoesOnInTheNextLine) {
  LineJoiner lines;
  EXPECT_FALSE(lines.take("one\\").has_value());
  EXPECT_TRUE(lines.wants_more());
  EXPECT_EQ(lines.take("two").value(), "one\ntwo");
  EXPECT_FALSE(lines.wants_more());
}

TEST(LineJoiner, ABlockIsOneText) {
  LineJoiner lines;
  EXPECT_FALSE(lines.take("\"\"\"").has_value());
  EXPECT_FALSE(lines.take("a\\").has_value());
  EXPECT_FALSE(lines.take("").has_value());
  EXPECT_EQ(lines.take(" \"\"\" ").value(), "a\\\n");
  EXPECT_EQ(lines.take("next").value(), "next");
}

TEST(LineJoiner, WhatIsDroppedIsGone) {
  LineJoiner lines;
  (void)lines.take("\"\"\"");
  (void)lines.take("a");
  lines.drop();
  EXPECT_EQ(lines.take("b").value(), "b");
}

TEST(ChatInput, TabFindsCommands) {
  EXPECT_EQ(commands_that_begin_with("/s"), (std::vector<std::string>{"/system", "/save", "/stats"}));
  EXPECT_TRUE(commands_that_begin_with("x").empty());
}

}  // namespace
}  // namespace chasqui::cli
