// Which schemas are kept, and what is said about the others. That answers fit them is tested end to end, with ajv.
#include "api/schema/schema_check.h"

#include <gtest/gtest.h>

#include "api/body/constraint.h"
#include "api/schema/schema_pattern.h"
#include "base/limits.h"
#include "model/schema_grammar.h"

namespace chasqui {
namespace {

namespace json = boost::json;

Result<json::object> check(const std::string& schema) { return check_schema(json::parse(schema), "schema"); }

TEST(SchemaCheck, KeepsWhatIsInTheList) {
  const char* schemas[] = {
      R"({})",
      R"(true)",
      R"({"type":"string"})",
      R"({"type":"string","minLength":2,"maxLength":5})",
      R"({"type":"string","pattern":"^[a-z]{2,4}(-[0-9]+)?$"})",
      R"({"type":"string","format":"date-time"})",
      R"({"type":["string","null"],"maxLength":4})",
      R"({"type":"integer","minimum":-3,"exclusiveMaximum":10})",
      R"({"type":"number"})",
      R"({"enum":["a",1,null,{"b":[]}]})",
      R"({"const":"x","type":"string"})",
      R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3})",
      R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false})",
      R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false})",
      R"({"type":"object","additionalProperties":{"type":"integer"}})",
      R"({"anyOf":[{"type":"string"},{"type":"integer"}]})",
      R"({"oneOf":[{"type":"string"},{"type":"integer"}]})",
      R"({"oneOf":[{"type":"null"},{"enum":["only"]}]})",
      R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},
                   {"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]})",
      R"({"allOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"type":"string"}}})",
      R"({"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},
                   {"type":"object","properties":{"b":{"type":"string"}}}]})",
      R"({"$ref":"#/$defs/Node","$defs":{"Node":{"type":"object","properties":{"next":{"anyOf":[
          {"$ref":"#/$defs/Node"},{"type":"null"}]}},"required":["next"]}}})",
      R"({"title":"t","description":"d","default":1,"examples":[1],"type":"integer","$comment":"c"})",
  };
  for (const char* schema : schemas) {
    const auto grammar = schema_constraint(json::parse(schema), "schema");
    EXPECT_TRUE(grammar) << schema << ": " << (grammar ? "" : grammar.error().message);
    if (grammar) {
      EXPECT_NE(grammar->text.find("root ::="), std::string::npos) << schema;
    }
  }
}

TEST(SchemaCheck, NamesTheKeywordThatIsNotSupported) {
  struct Case {
    const char* schema;
    const char* field;
  };
  const Case cases[] = {
      {R"({"type":"object","minProperties":1})", "schema.minProperties"},
      {R"({"type":"object","maxProperties":1})", "schema.maxProperties"},
      {R"({"type":"object","patternProperties":{}})", "schema.patternProperties"},
      {R"({"type":"object","propertyNames":{}})", "schema.propertyNames"},
      {R"({"type":"object","dependentRequired":{}})", "schema.dependentRequired"},
      {R"({"type":"object","dependentSchemas":{}})", "schema.dependentSchemas"},
      {R"({"type":"object","unevaluatedProperties":false})", "schema.unevaluatedProperties"},
      {R"({"type":"object","properties":{"a":{"type":"number","minimum":0}}})", "schema.properties.a.minimum"},
      {R"({"type":"integer","multipleOf":3})", "schema.multipleOf"},
      {R"({"type":"array","uniqueItems":true})", "schema.uniqueItems"},
      {R"({"type":"array","contains":{}})", "schema.contains"},
      {R"({"type":"array","minContains":1})", "schema.minContains"},
      {R"({"type":"array","maxContains":1})", "schema.maxContains"},
      {R"({"type":"array","unevaluatedItems":false})", "schema.unevaluatedItems"},
      {R"({"type":"array","items":{"not":{}}})", "schema.items.not"},
      {R"({"not":{"type":"string"}})", "schema.not"},
      {R"({"if":{},"then":{},"else":{}})", "schema.if"},
      {R"({"type":"string","contentEncoding":"base64"})", "schema.contentEncoding"},
      {R"({"type":"string","contentMediaType":"text/html"})", "schema.contentMediaType"},
      {R"({"type":"string","format":"uri"})", "schema.format"},
      {R"({"type":"string","pattern":"^a$","minLength":1})", "schema.minLength"},
      {R"({"type":"string","pattern":"a"})", "schema.pattern"},
      {R"({"type":"string","pattern":"^(?=a)b$"})", "schema.pattern"},
      {R"({"type":"string","pattern":"^a|b$"})", "schema.pattern"},
      {R"({"type":"string","minLength":5000})", "schema.minLength"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "schema.minLength"},
      {R"({"type":"date"})", "schema.type"},
      {R"({"type":"object","required":["a"]})", "schema.required"},
      {R"({"$ref":"http://example.org/x"})", "schema.$ref"},
      {R"({"$ref":"#/$defs/none"})", "schema.$ref"},
      {R"({"$dynamicRef":"#x"})", "schema.$dynamicRef"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "schema.oneOf"},
      {R"({"type":"object","anyOf":[{"type":"string"}]})", "schema.type"},
      {R"({"allOf":[{"type":"string"},{"minLength":2}]})", "schema.allOf"},
      {R"({"type":"integer","minimum":2,"maximum":1})", "schema.minimum"},
      {R"({"enum":[]})", "schema.enum"},
      {R"({"anyOf":[]})", "schema.anyOf"},
      {R"(false)", "schema"},
      {R"(3)", "schema"},
  };
  for (const Case& c : cases) {
    const auto checked = check(c.schema);
    ASSERT_FALSE(checked) << c.schema;
    EXPECT_EQ(checked.error().field, c.field) << checked.error().message;
  }
}

TEST(SchemaCheck, KeepsToItsLimits) {
  std::string deep = R"({"type":"string"})";
  for (int i = 0; i < 70; ++i) deep = R"({"type":"array","items":)" + deep + "}";
  json::parse_options options;
  options.max_depth = 200;
  EXPECT_FALSE(check_schema(json::parse(deep, {}, options), "schema"));
  const std::string name(300, 'x');
  EXPECT_FALSE(check(R"({"type":"object","properties":{")" + name + R"(":{}}})"));
}

TEST(SafePattern, NeverMatchesWhatJsonHasToEscape) {
  EXPECT_EQ(*safe_pattern("^[a-c]$"), "^[\\x61-\\x63]$");
  EXPECT_EQ(*safe_pattern("^\\d$"), "^[\\x30-\\x39]$");
  const std::string dot = *safe_pattern("^.$");
  EXPECT_EQ(dot, "^[\\x20-\\x21\\x23-\\x5B\\x5D-\\x7E\\U00000080-\\U0010FFFF]$");
  EXPECT_EQ(*safe_pattern("^[^x]$"), "^[\\x20-\\x21\\x23-\\x5B\\x5D-\\x77\\x79-\\x7E\\U00000080-\\U0010FFFF]$");
  EXPECT_FALSE(safe_pattern("^\"$"));
  EXPECT_FALSE(safe_pattern("^[\"]$"));
  EXPECT_EQ(*safe_pattern("^(?:ab)+?c{2,3}$"), "^(ab)+c{2,3}$");
}

TEST(SafePattern, RepeatsWholeCharacters) {
  EXPECT_EQ(*safe_pattern("^\u00fa{2}x$"), "^[\u00fa]{2}x$");
  EXPECT_EQ(*safe_pattern("^a{2,}(b|)c{0,3}?$"), "^a{2,}(b|)c{0,3}$");
}

TEST(SafePattern, SaysWhatItDoesNotKnow) {
  for (const char* pattern : {"^*a$", "^a**$", "^(|+)$", "^a{3,2}$", "^a{,2}$", "^a{2001}$", "^a{1}{2}$", "a", "^a",
                              "^(a$", "^a)$", "^[a$", "^\\bword$", "^a{x}$", "^(?<n>a)$", "^a\\1$", "^a^b$"}) {
    EXPECT_FALSE(safe_pattern(pattern)) << pattern;
  }
}

TEST(SchemaCheck, TellsDefinitionsOfSimilarNamesApart) {
  const auto checked = check(R"({"type":"array","prefixItems":[{"$ref":"#/$defs/a-b"},{"$ref":"#/definitions/a_b"}],
      "$defs":{"a-b":{"const":1}},"definitions":{"a_b":{"const":2}}})");
  ASSERT_TRUE(checked);
  const auto grammar = grammar_of_schema(json::serialize(*checked));
  ASSERT_TRUE(grammar);
  EXPECT_NE(grammar->find("(\"1\")"), std::string::npos) << *grammar;
  EXPECT_NE(grammar->find("(\"2\")"), std::string::npos) << *grammar;
}

TEST(SchemaCheck, RefusesWhatLeadsBackToItselfBeforeAnythingIsWritten) {
  const auto one = check(R"({"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}})");
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().field, "schema.$ref");
  EXPECT_FALSE(check(
      R"({"$defs":{"A":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/B"}]},"B":{"allOf":[{"$ref":"#/$defs/A"}]}}})"));
  EXPECT_TRUE(check(R"({"$defs":{"A":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/A"}}]}}})"));
}

TEST(SchemaGrammar, LeavesTheRootToTheWholeWhereAMemberHasNoName) {
  const auto grammar = grammar_of_schema(R"({"type":"object","properties":{"":{"type":"null"}},"required":[""]})");
  ASSERT_TRUE(grammar);
  EXPECT_NE(grammar->find("root ::= answer"), std::string::npos) << *grammar;
}

TEST(SchemaGrammar, WritesNoNumberThatOverflowsAndNoHalfASurrogate) {
  const auto grammar = grammar_of_schema(R"({"type":"array","items":{"type":"number"}})");
  ASSERT_TRUE(grammar);
  EXPECT_NE(grammar->find("[eE] [-+]? [0-9]{1,2}"), std::string::npos) << *grammar;
  const auto text = grammar_of_schema(R"({"type":"string"})");
  EXPECT_NE(text->find("[dD] [0-7]"), std::string::npos) << *text;
}

TEST(SchemaCheck, RefusesReferencesToNowhereInAlternatives) {
  for (const char* ref : {"#", "#/", "", "x", "#/$defs", "#/properties/a"}) {
    for (const char* keyword : {"allOf", "oneOf"}) {
      const json::object schema{{keyword, json::array{json::object{{"type", "string"}}, json::object{{"$ref", ref}}}}};
      EXPECT_FALSE(check_schema(schema, "schema")) << ref;
    }
  }
}

// Each took time that grows with the square of its bytes, or faster.
TEST(SchemaCheck, ReadsLongChainsAndListsInLinearTime) {
  json::object definitions;
  for (int i = 0; i < 1500; ++i) {
    definitions["d" + std::to_string(i)] = json::object{{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
  }
  definitions["d1500"] = json::object{{"type", "string"}};
  json::object chain{{"$ref", "#/$defs/d0"}, {"$defs", definitions}};
  EXPECT_TRUE(check_schema(chain, "schema"));
  definitions["d1500"] = json::object{{"$ref", "#/$defs/d1000"}};
  chain["$defs"] = definitions;
  const auto cycle = check_schema(chain, "schema");
  ASSERT_FALSE(cycle);
  EXPECT_NE(cycle.error().message.find("leads back"), std::string::npos) << cycle.error().message;

  const json::array types(6000, "string");
  const auto listed = check_schema(json::object{{"type", types}}, "schema");
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().field, "schema.type");
  EXPECT_FALSE(check_schema(json::object{{"type", types}, {"enum", json::array(6000, 1)}}, "schema"));

  json::array constants;
  for (std::size_t i = 0; i < kSizeLimit<"schema_alternatives">; ++i) constants.push_back(json::object{{"const", i}});
  EXPECT_TRUE(check_schema(json::object{{"oneOf", constants}}, "schema"));
  constants.push_back(json::object{{"const", "one more"}});
  const auto many = check_schema(json::object{{"oneOf", constants}}, "schema");
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().field, "schema.oneOf");
}

}  // namespace
}  // namespace chasqui
