#include "model/indent_guard.h"

#include <string_view>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

// What is left of `text` that arrives in pieces of `size` bytes.
std::string guarded(std::string_view text, std::int32_t indent_min, std::size_t size) {
  IndentGuard guard(indent_min);
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) {
    std::string piece(text.substr(0, size));
    guard.pass(piece);
    out += piece;
  }
  return out;
}

TEST(IndentGuard, EndsAtTheFirstLineThatIsIndentedLess) {
  struct Case {
    std::string_view text;
    std::int32_t indent_min;
    std::string_view left;
  };
  const Case cases[] = {
      {"if (a)\n  b();\n  c();\n}\nd();\n", 2, "if (a)\n  b();\n  c();\n"},
      {"a\n\tb\n c\n", 1, "a\n\tb\n c\n"},
      {"a\n\tb\n c\n", 2, "a\n\t"},
      {"a\n  b\n\n  c", 2, "a\n  b\n"},
      {"no line break", 4, "no line break"},
      {"a\nb\n", 0, "a\nb\n"},
      {"a\n    b  c\n", 4, "a\n    b  c\n"},
      {"a\n", 9, "a\n"},
  };
  for (const Case& c : cases) {
    for (const std::size_t size : {1, 2, 3, 100}) {
      EXPECT_EQ(guarded(c.text, c.indent_min, size), c.left) << c.text << " in pieces of " << size;
    }
  }
}

TEST(IndentGuard, SaysOnceAndForAllThatTheAnswerEnds) {
  IndentGuard guard(2);
  std::string text = "a\n  b";
  EXPECT_TRUE(guard.pass(text));
  text = "\nc";
  EXPECT_FALSE(guard.pass(text));
  EXPECT_EQ(text, "\n");
  text = "\n    held back";
  EXPECT_FALSE(guard.pass(text));
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace chasqui
