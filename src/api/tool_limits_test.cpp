#include "api/tool_limits.h"

#include <string>

#include <gtest/gtest.h>

#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

json::object properties(std::size_t count) {
  json::object out;
  for (std::size_t i = 0; i < count; ++i) out["p" + std::to_string(i)] = json::object{{"type", "string"}};
  return out;
}

json::object tool(json::object of) {
  json::object schema{{"type", "object"}, {"properties", std::move(of)}};
  return {{"type", "function"}, {"function", json::object{{"name", "t"}, {"parameters", std::move(schema)}}}};
}

// What is said of a body with these tools; empty where they are taken.
std::string refusal(json::array tools) {
  const json::object body{{"tools", std::move(tools)}};
  Fields fields(body);
  const json::array* const taken = tools_within_limits(fields);
  EXPECT_EQ(taken == nullptr, !fields.ok());
  return fields.ok() ? std::string() : fields.error().message;
}

TEST(ToolLimits, TakesAsManyAsAreAllowedAndNotOneMore) {
  json::array tools;
  for (std::size_t i = 0; i < kSizeLimit<"tools">; ++i) tools.push_back(tool(properties(1)));
  EXPECT_EQ(refusal(tools), "");
  tools.push_back(tool(properties(1)));
  EXPECT_NE(refusal(tools).find("tools must be an array of at most"), std::string::npos) << refusal(tools);
}

TEST(ToolLimits, CountsThePropertiesOfEachObject) {
  constexpr std::size_t kMost = kSizeLimit<"schema_properties">;
  EXPECT_EQ(refusal({tool(properties(kMost))}), "");
  EXPECT_NE(refusal({tool(properties(kMost + 1))}), "");
  json::object deep{{"type", "object"}, {"properties", properties(kMost + 1)}};
  EXPECT_NE(refusal({tool({{"p", json::object{{"anyOf", json::array{deep}}}}})}), "") << "wherever they are";
  EXPECT_NE(refusal({json::object{{"name", "t"}, {"input_schema", deep}}}), "") << "and in every dialect";
}

TEST(ToolLimits, CountsThePropertiesOfAllTools) {
  constexpr std::size_t kMost = kSizeLimit<"schema_properties">;
  json::array tools;
  for (std::size_t i = 0; i < kSizeLimit<"tool_properties"> / kMost; ++i) tools.push_back(tool(properties(kMost)));
  EXPECT_EQ(refusal(tools), "");
  tools.push_back(tool(properties(kMost)));
  EXPECT_NE(refusal(tools), "");
}

TEST(ToolLimits, SaysNothingWhereThereAreNone) {
  const json::object body;
  Fields fields(body);
  EXPECT_EQ(tools_within_limits(fields), nullptr);
  EXPECT_TRUE(fields.ok());
}

}  // namespace
}  // namespace chasqui
