// What is read of a grammar's text, and what is refused: by which rule, in which line.
#include "model/grammar/gbnf.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::string why(std::string_view text) {
  const auto read = parse_gbnf(text);
  if (read) return "";
  EXPECT_EQ(read.error().field, "grammar");
  return read.error().message;
}

TEST(Gbnf, TellsLineAndRuleOfAFault) {
  const std::string begin = "grammar must be valid GBNF with a rule named root: ";
  EXPECT_EQ(why("root ::= \"a"), begin + "line 1, rule root: a literal or a class has no end");
  // Of its own memory, so that a sanitizer sees a look behind its end.
  for (const std::string open : {"root ::= \"a\\", "root ::= [\\", "root ::= [a-\\"}) {
    EXPECT_EQ(why(std::string(open)), begin + "line 1, rule root: a literal or a class has no end") << open;
  }
  EXPECT_EQ(why("root ::= item\n"), begin + "line 2: rule item is used but not defined");
  EXPECT_EQ(why("start ::= \"a\""), begin + "line 1: there is no rule root");
  EXPECT_EQ(why("root ::= \"a\"\nb ::= (\"x\"\n"), begin + "line 3, rule b: a group is not closed with )");
  EXPECT_EQ(why("root = \"a\""), begin + "line 1, rule root: ::= is expected after the name");
  EXPECT_EQ(why("root ::= *"), begin + "line 1, rule root: there is nothing that '*' could repeat");
  EXPECT_EQ(why("root ::= \"\\q\""), begin + "line 1, rule root: there is no escape \\q");
  EXPECT_EQ(why("root ::= \"\\u12\""), begin + "line 1, rule root: an escape needs 4 hexadecimal digits");
  EXPECT_EQ(why("root ::= \"a\"{3,2}"), begin + "line 1, rule root: a repetition ends below where it begins");
  EXPECT_EQ(why("root ::= \"\\ud83d\""),
            begin + "line 1, rule root: a literal holds a code that is no Unicode character, or U+0000");
  EXPECT_EQ(why("root ::= <nothing>"), begin + "line 1, rule root: <nothing> is not one token of the model");
  EXPECT_EQ(why("root ::= \"a\" )"), begin + "line 1, rule root: a rule cannot go on with ')'");
  EXPECT_EQ(why(""), begin + "line 1: there is no rule root");
}

TEST(Gbnf, LimitsNesting) {
  const auto nested = [](std::size_t depth) {
    return "root ::= " + std::string(depth, '(') + "\"a\"" + std::string(depth, ')');
  };
  EXPECT_EQ(why(nested(100)), "");
  EXPECT_NE(why(nested(101)).find("at most 100 levels"), std::string::npos);
  EXPECT_NE(why("root ::= \"a\"" + std::string(1000, '?')).find("too many repetitions"), std::string::npos);
}

TEST(Gbnf, ReadsTokensByNumberAndName) {
  const auto read = parse_gbnf("root ::= <[7]> !<think>", [](std::string_view name) {
    return name == "<think>" ? std::optional<Token>(9) : std::nullopt;
  });
  ASSERT_TRUE(read);
  const GbnfPart& body = read->rules[read->root].body.parts.front();
  ASSERT_EQ(body.parts.size(), 2u);
  EXPECT_EQ(body.parts[0].token, 7);
  EXPECT_FALSE(body.parts[0].inverse);
  EXPECT_EQ(body.parts[1].token, 9);
  EXPECT_TRUE(body.parts[1].inverse);
}

}  // namespace
}  // namespace chasqui
