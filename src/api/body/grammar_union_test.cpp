#include "api/body/grammar_union.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(GrammarUnion, RenamesRulesAndNothingElse) {
  EXPECT_EQ(grammar_of_either("root ::= \"a \\\" b\" [c\\]d] ws{1,2} # root\nws ::= \" \"",
                              "root ::= (ws | <[12]>)*\nws ::= \"\\t\""),
            "root ::= one-root | two-root\n"
            "one-root ::= \"a \\\" b\" [c\\]d] one-ws{1,2} # root\none-ws ::= \" \"\n"
            "two-root ::= (two-ws | <[12]>)*\ntwo-ws ::= \"\\t\"");
}

TEST(GrammarUnion, SurvivesTextsThatEndInTheMiddle) {
  for (const char* text : {"root ::= \"a", "root ::= [a\\", "root ::= x{1", "#", ""}) {
    EXPECT_NE(grammar_of_either(text, text).find("two-root"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace chasqui
