// Which grammars are too much work, known without compiling them.
#include "model/grammar_shape.h"

#include <string>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Rules r0 … rN, each of which is `left` NEXT `middle` NEXT `right`.
std::string chain(int length, const std::string& before, const std::string& middle, const std::string& after) {
  std::string out = "root ::= r0\n";
  for (int i = 0; i < length; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    out += "r" + std::to_string(i) + " ::= " + before + next + middle + next + after + "\n";
  }
  return out + "r" + std::to_string(length) + " ::= \"z\"\n";
}

TEST(GrammarShape, LetsOrdinaryGrammarsPass) {
  std::string values = "root ::= \"a\"";
  for (int i = 0; i < 2500; ++i) values += " | \"value " + std::to_string(i) + "\"";
  for (const std::string& text :
       {std::string("root ::= \"yes\" | \"no\"  # a comment (\n"),
        std::string("root ::= [^\"\\]] (x | \"(\" root \")\")*\nx ::= .{2,2000}\n"),
        std::string("root ::= ((\"a\"*)*)*"), values, chain(300, "\"a\" ", " | \"b\" ", "")}) {
    const auto ok = check_grammar_shape(text);
    EXPECT_TRUE(ok) << text.substr(0, 80) << ": " << (ok ? "" : ok.error().message);
  }
}

TEST(GrammarShape, RefusesMoreWaysThanThereIsTimeFor) {
  for (const std::string& text :
       {chain(300, "", " | ", ""), chain(60, "", " \"x\"? | ", " \"y\"?"), "root ::= " + repeated("\"a\"? ", 1500),
        "root ::= " + repeated("(\"a\"? \"b\"?)? ", 200), std::string("root ::= ((\"a\"? \"b\"?){40}){40}")}) {
    const auto refused = check_grammar_shape(text);
    ASSERT_FALSE(refused) << text.substr(0, 80);
    EXPECT_NE(refused.error().message.find("ambiguous"), std::string::npos) << refused.error().message;
  }
}

std::string nested(int levels, const std::string& open, const std::string& close) {
  return "root ::= " + repeated(open, levels) + "\"z\"" + repeated(close, levels);
}

// Each was looked at once more for every level around it: the first two took longer than anybody would wait.
TEST(GrammarShape, LooksAtNestedGroupsOnce) {
  EXPECT_TRUE(check_grammar_shape(nested(90, "(\"a\"? ", ")")));
  EXPECT_TRUE(check_grammar_shape(nested(90, "(\"a\" \"b\" ", " \"c\")?")));
  EXPECT_TRUE(check_grammar_shape("root ::= " + repeated("\"a\" ", 50'000))) << "and so is a long sequence";
}

TEST(GrammarShape, RefusesWhatGrowsWhenItIsCompiled) {
  const std::string long_text = '"' + std::string(60'000, 'a') + '"';
  for (const std::string& text :
       {"root ::= " + long_text + "{2000}", "root ::= " + long_text + "{1,2000}",
        "root ::= " + repeated("\"a\"{1,2000} ", 4000), std::string(60'000, 'r') + " ::= \"a\"{1,2000}\n"}) {
    const auto refused = check_grammar_shape(text);
    ASSERT_FALSE(refused) << text.substr(0, 80);
    EXPECT_NE(refused.error().message.find("too large"), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(check_grammar_shape("root ::= " + repeated("\"a\"{1,2000} ", 20)));
  EXPECT_TRUE(check_grammar_shape("root ::= \"a\"{2000} [^\"]{2,2000}"));
}

TEST(GrammarShape, RefusesRepetitionsThatEndBeforeTheyBegin) {
  EXPECT_FALSE(check_grammar_shape("root ::= \"a\"{3,1}"));
  EXPECT_FALSE(check_grammar_shape("root ::= \"a\" ([a-z]{4,0})?"));
  EXPECT_TRUE(check_grammar_shape("root ::= \"a\"{3,3} \"b\"{0,0} \"c\"{2,}"));
}

TEST(GrammarShape, CountsTheCopiesOfSeveralAnswers) {
  const std::string large = "root ::= " + repeated("\"a\"{1,2000} ", 20);
  EXPECT_TRUE(check_grammar_copies(large, 1));
  EXPECT_FALSE(check_grammar_copies(large, 128));
  EXPECT_TRUE(check_grammar_copies("root ::= [a-z]{1,20}", 128));
}

// The stacks of its ways are as deep as the chain of rules that leads there.
TEST(GrammarShape, RefusesManyWaysThroughManyRules) {
  std::string values = "root ::= r0\n";
  for (int i = 0; i < 1000; ++i) {
    values += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"a\"\n";
  }
  values += "r1000 ::= \"z\"";
  EXPECT_TRUE(check_grammar_shape(values));
  for (int i = 0; i < 100; ++i) values += " | \"z\"";
  EXPECT_FALSE(check_grammar_shape(values));
}

TEST(GrammarShape, RefusesWhatIsTooLargeOrTooDeep) {
  EXPECT_FALSE(check_grammar_shape("root ::= " + std::string(200, '(') + "\"a\"" + std::string(200, ')')));
  EXPECT_FALSE(check_grammar_shape(std::string(300'000, ' ')));
  EXPECT_FALSE(check_grammar_shape(std::string_view("root ::= \"a\0\"", 13)));
  std::string rules;
  for (int i = 0; i < 10'001; ++i) rules += "r" + std::to_string(i) + " ::= \"a\"\n";
  EXPECT_FALSE(check_grammar_shape(rules));
}

}  // namespace
}  // namespace chasqui
