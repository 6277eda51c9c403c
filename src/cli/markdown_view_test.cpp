#include "cli/markdown_view.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

// With tags for colours; in pieces of every size the result is the same.
std::string shown(std::string_view text) {
  std::string first;
  for (std::size_t size = 1; size <= text.size(); ++size) {
    MarkdownView view(Paint(true));
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) out += view.feed(text.substr(at, size));
    out += view.end();
    if (size == 1) first = out;
    EXPECT_EQ(out, first) << "in pieces of " << size;
  }
  const std::pair<std::string_view, std::string_view> tags[] = {
      {"\x1b[1m", "<b>"}, {"\x1b[2m", "<dim>"}, {"\x1b[3m", "<i>"}, {"\x1b[36m", "<code>"}, {"\x1b[0m", "<>"}};
  for (const auto& [colour, tag] : tags) {
    for (std::size_t at = 0; (at = first.find(colour)) != std::string::npos;) first.replace(at, colour.size(), tag);
  }
  EXPECT_EQ(first.find('\x1b'), std::string::npos);
  return first;
}

TEST(MarkdownView, ShowsMarksAsStyles) {
  EXPECT_EQ(shown("some **bold words** and `code`, *more* or _more_."),
            "some <b>bold words<> and <code>code<>, <i>more<> or <i>more<>.");
  EXPECT_EQ(shown("**a** **b**\n"), "<b>a<> <b>b<>\n");
  EXPECT_EQ(shown("***both***"), "<b>both<>");
  EXPECT_EQ(shown("``a ` b``"), "<code>a ` b<>");
  EXPECT_EQ(shown("**`x`** y"), "<b>`x`<> y");
  EXPECT_EQ(shown("汉**字**汉"), "汉<b>字<>汉");
}

TEST(MarkdownView, LeavesMarksThatAreNone) {
  for (const char* text : {"2 * 3 * 4", "a*b*c", "snake_case_name", "a__init__b", "*args and more", "5 ** 2", "**", "`",
                           "a ` b", "f(**kwargs)", "#no heading", "-1", "*", "1. one", "| a | b |", "____x"}) {
    EXPECT_EQ(shown(text), text);
  }
  EXPECT_EQ(shown("*args and **bold**\n"), "*args and <b>bold<>\n");
}

TEST(MarkdownView, KnowsKindsOfLines) {
  EXPECT_EQ(shown("# A `b` **c**\ntext"), "<b>A <code>b<><b> <b>c<><b><>\ntext");
  EXPECT_EQ(shown("- one\n  * **two**\n+ three"), "• one\n  • <b>two<>\n• three");
  EXPECT_EQ(shown("> said\n"), "<dim>> said<>\n");
  EXPECT_EQ(shown("---\ntext\n"), "<dim>---<>\ntext\n");
  EXPECT_EQ(shown("\n\n"), "\n\n");
}

TEST(MarkdownView, LeavesCodeAsItIs) {
  EXPECT_EQ(shown("```python\n# no **heading**\n\n    x = a * b\n```\n**bold**"),
            "<dim>```python<>\n<code># no **heading**<>\n\n<code>    x = a * b<>\n<dim>```<>\n<b>bold<>");
  EXPECT_EQ(shown("```\ncut"), "<dim>```<>\n<code>cut<>");
}

TEST(MarkdownView, HoldsALongLineNotForEver) {
  MarkdownView view(Paint(true));
  const std::string out = view.feed("**" + std::string(2000, 'x'));
  EXPECT_GT(out.size(), 1500u) << "a mark that none closes holds back little";
  EXPECT_EQ(shown("**" + std::string(1000, 'x')), "**" + std::string(1000, 'x'));
}

}  // namespace
}  // namespace chasqui::cli
