#include "api/body/tool_limits.h"

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

TEST(ToolLimits, BoundsNamesReferencesAndPatterns) {
  const std::string good(kSizeLimit<"schema_name_bytes">, '_');
  const std::string bad = good + '_';
  EXPECT_EQ(refusal({tool({{good, json::object{{"$ref", good}}}})}), "");
  EXPECT_NE(refusal({tool({{bad, json::object{}}})}).find("tools[0] must be with names"), std::string::npos);
  EXPECT_NE(refusal({tool(properties(1)), tool({{"p", json::object{{"$ref", bad}}}})}).find("tools[1]"),
            std::string::npos);
  EXPECT_NE(refusal({json::object{{"function", json::object{{"name", bad}}}}}), "");
  EXPECT_NE(refusal({json::object{{"name", bad}, {"input_schema", json::object{}}}}), "");
  const std::string pattern(kSizeLimit<"pattern_bytes"> + 1, 'a');
  EXPECT_NE(refusal({tool({{"p", json::object{{"pattern", pattern}}}})}), "");
}

// The converter names a rule after the path to each part, so that its memory grows with the length of all paths.
TEST(ToolLimits, BoundsThePathsToAllParts) {
  const auto nested = [](int levels, std::size_t leaves, std::size_t name_bytes) {
    json::object schema{{"type", "object"}, {"properties", properties(leaves)}};
    for (int i = 0; i < levels; ++i) {
      schema = {{"type", "object"}, {"properties", json::object{{std::string(name_bytes, 'n'), std::move(schema)}}}};
    }
    return schema;
  };
  EXPECT_EQ(refusal({tool({{"p", nested(20, 100, 30)}})}), "") << "with names as people write them";
  json::array tools;
  for (int i = 0; i < 9; ++i) tools.push_back(tool({{"p", nested(24, 190, 250)}}));
  EXPECT_NE(refusal(tools).find("paths to all of their parts"), std::string::npos) << refusal(tools);
}

TEST(ToolLimits, BoundsWhatAllOfThemHoldTogether) {
  json::array references;
  for (std::size_t i = 0; i <= kSizeLimit<"tool_references">; ++i) references.push_back(json::object{{"$ref", "#/x"}});
  EXPECT_NE(refusal({tool({{"p", json::object{{"anyOf", references}}}})}), "");
  references.pop_back();
  EXPECT_EQ(refusal({tool({{"p", json::object{{"anyOf", references}}}})}), "");
  json::array values(kSizeLimit<"tool_parts">);
  EXPECT_NE(refusal({tool({{"p", json::object{{"enum", values}}}})}), "");
  const std::string text(kSizeLimit<"tool_bytes">, 'x');
  EXPECT_NE(refusal({tool({{"p", json::object{{"const", text}}}})}), "");
}

// llama-common copies a schema for each of its types, so that nested lists of two double with every level.
TEST(ToolLimits, CountsASchemaOnceForEachOfItsTypes) {
  const auto nested = [](int levels) {
    json::object schema{{"type", "string"}};
    for (int i = 0; i < levels; ++i) {
      schema = {{"type", json::array{"object", "string"}}, {"allOf", json::array{std::move(schema)}}};
    }
    return schema;
  };
  EXPECT_EQ(refusal({tool({{"p", nested(10)}})}), "");
  EXPECT_NE(refusal({tool({{"p", nested(24)}})}), "");
  EXPECT_NE(refusal({tool({{"p", json::object{{"type", json::array(8, "string")}}}})}), "");
}

TEST(ToolLimits, SaysNothingWhereThereAreNone) {
  const json::object body;
  Fields fields(body);
  EXPECT_EQ(tools_within_limits(fields), nullptr);
  EXPECT_TRUE(fields.ok());
}

}  // namespace
}  // namespace chasqui
