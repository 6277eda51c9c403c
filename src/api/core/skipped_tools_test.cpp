#include "api/core/skipped_tools.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(SkippedTools, SaysWhichTypesAndBoundsThem) {
  std::vector<std::string> types;
  EXPECT_FALSE(skip_tool(boost::json::parse(R"({"type":"function"})"), "function", types));
  EXPECT_FALSE(skip_tool(boost::json::parse(R"({"name":"x"})"), "function", types));
  EXPECT_FALSE(skip_tool(boost::json::parse("3"), "function", types));
  EXPECT_EQ(skipped_warning(types), "");
  EXPECT_TRUE(skip_tool(boost::json::parse(R"({"type":"a\r\nb"})"), "function", types));
  EXPECT_TRUE(skip_tool(boost::json::parse(R"({"type":"a\r\nb"})"), "function", types));
  EXPECT_EQ(types, std::vector<std::string>{"a??b"});
  boost::json::object tool{{"type", std::string(1000, 'x')}};
  EXPECT_TRUE(skip_tool(tool, "function", types));
  EXPECT_EQ(types.back().size(), 64u);
  for (int i = 0; i < 20; ++i) types.push_back(std::to_string(i));
  EXPECT_TRUE(skipped_warning(types).ends_with(", 5 and others")) << skipped_warning(types);
}

TEST(SkippedTools, SaysWhichKeywordsAreDroppedAndBoundsThem) {
  EXPECT_EQ(dropped_warning({}), "");
  EXPECT_EQ(dropped_warning({"#/properties/a contains", "#/b\r\n,é if"}),
            "keywords of the schema that the answer may not keep to: #/properties/a contains, #/b????? if");
  const std::string many = dropped_warning(std::vector<std::string>(100, std::string(1000, 'x')));
  EXPECT_TRUE(many.ends_with(" and others"));
  EXPECT_LT(many.size(), 1500u);
}

}  // namespace
}  // namespace chasqui
