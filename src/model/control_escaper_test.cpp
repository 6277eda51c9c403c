#include "model/control_escaper.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(ControlEscaper, EscapesWhatMayNotStandInAString) {
  EXPECT_EQ(ControlEscaper().escaped("{\"a\": \"one\ntwo\"}"), "{\"a\": \"one\\u000atwo\"}");
  EXPECT_EQ(ControlEscaper().escaped("{\"a\": \"x\\\n\"}"), "{\"a\": \"x\\u000a\"}");
}

TEST(ControlEscaper, LeavesEverythingElse) {
  for (const std::string_view text : {"{\n\t\"a\": \"b\\n\\\"c\\\\\"\n}", "[1,\r\n2]", "{\"é\": \"<\x7f>\"}", ""}) {
    EXPECT_EQ(ControlEscaper().escaped(text), text);
  }
}

TEST(ControlEscaper, KnowsWhereItIsFromPieceToPiece) {
  ControlEscaper escaper;
  std::string out;
  for (const char c : std::string("{\"a\\\"\": \"b\\\\\"\n, \"c\n\": 1}")) out += escaper.escaped({&c, 1});
  EXPECT_EQ(out, "{\"a\\\"\": \"b\\\\\"\n, \"c\\u000a\": 1}");
}

}  // namespace
}  // namespace chasqui
