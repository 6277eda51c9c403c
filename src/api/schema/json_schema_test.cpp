// Which texts the grammar of a schema takes, keyword by keyword; what is refused, and what is dropped.
#include "api/schema/json_schema.h"

#include <gtest/gtest.h>

#include "api/schema/test_schema.h"

namespace chasqui {
namespace {

namespace json = boost::json;

void check_texts(const std::vector<SchemaCase>& cases, SchemaOrder order = SchemaOrder::written) {
  EXPECT_EQ(wrong_texts(cases, order), "");
}

TEST(JsonSchema, KeepsTypes) {
  check_texts({
      {"{}", {"1", "\"a\"", "{\"a\":[1,{}]}", "null", "[ ]", "-0.5e3"}, {"", "nul", "{\"a\"}", "01", "[1,]"}},
      {R"({"type":"string"})", {"\"\"", R"("\u00e9\n\"")"}, {"1", R"("\ud83d")", "\"\n\""}},
      {R"({"type":["integer","null"]})", {"3", "-17", "null"}, {"1.5", "\"a\"", "-"}},
      {R"({"type":"integer","nullable":true})", {"3", "null"}, {"true"}},
      {R"({"not":{"type":["string","object","array"]}})", {"3", "null", "true"}, {"\"a\"", "{}"}},
  });
}

TEST(JsonSchema, KeepsListedValues) {
  check_texts({
      {R"({"enum":["a",1,null,[2.5],{"b":"\n"}]})", {"\"a\"", "1", "null", "[2.5]", R"({"b":"\n"})"}, {"2", "\"b\""}},
      {R"({"const":"\u0001\"\\é"})", {"\"\\u0001\\\"\\\\é\""}, {}},
      {R"({"enum":["a","abc",3,12],"type":"string","minLength":2})", {"\"abc\""}, {"\"a\"", "3"}},
      {R"({"enum":[1,5,10,2.5],"minimum":2,"multipleOf":5})", {"5", "10"}, {"1", "2.5"}},
      {R"({"type":"string","not":{"enum":["a","ab"]}})", {"\"\"", "\"b\"", "\"abc\"", "\"aa\""}, {"\"a\"", "\"ab\""}},
      {R"({"enum":[{"a":1},{"a":"x"}],"properties":{"a":{"type":"string"}}})", {R"({"a":"x"})"}, {R"({"a":1})"}},
  });
}

TEST(JsonSchema, KeepsLengthsAndPatterns) {
  check_texts({
      {R"({"type":"string","minLength":2,"maxLength":3})", {"\"ab\"", R"("é\n🚀")"}, {"\"a\"", "\"abcd\""}},
      {R"({"type":"string","pattern":"^[a-c]{2,3}$"})", {"\"ab\"", "\"cab\""}, {"\"a\"", "\"abca\"", "\"ad\""}},
      {R"({"type":"string","pattern":"b+"})", {"\"b\"", "\"xxbyy\"", R"("\nb")"}, {"\"\"", "\"ac\""}},
      {R"({"type":"string","pattern":"^a|b$"})", {"\"a\"", "\"axx\"", "\"xb\""}, {"\"xa\"", "\"bx\"", "\"\""}},
      {R"({"type":"string","pattern":"^(?:a|(?<n>b)c)*$"})", {"\"\"", "\"abca\""}, {"\"b\"", "\"ab\""}},
      {R"({"type":"string","pattern":"^\\d+\"\\\\$"})", {R"("12\"\\")"}, {R"("12")"}},
      {R"({"type":"string","pattern":"^[^a-z\\s]+$"})", {"\"A1é\""}, {"\"a\"", "\" \"", "\"\""}},
      {R"({"type":"string","pattern":"^a.*z$","minLength":3,"maxLength":5})",
       {"\"abz\"", "\"aéééz\""},
       {"\"az\"", "\"abcdez\""}},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}],"type":"string"})", {"\"ab\"", "\"bxa\""}, {"\"a\"", "\"bb\""}},
      {R"({"type":"string","pattern":"^\\u00e9\\x41\\u{1F680}[\\uD83D\\uDE80]$"})", {"\"éA🚀🚀\""}, {"\"eA\""}},
      {R"({"type":"string","pattern":""})", {"\"\"", "\"x\""}, {}},
  });
}

TEST(JsonSchema, KeepsFormats) {
  check_texts({
      {R"({"type":"string","format":"date"})", {"\"2024-02-28\""}, {"\"2024-02-30\"", "\"24-1-1\""}},
      {R"({"type":"string","format":"time"})",
       {"\"12:30:00Z\"", "\"23:59:59.5+01:00\""},
       {"\"24:00:00Z\"", "\"12:30\""}},
      {R"({"type":"string","format":"date-time"})", {"\"2024-02-28T12:30:00Z\""}, {"\"2024-02-28\""}},
      {R"({"type":"string","format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123e4567\""}},
      {R"({"type":"string","format":"email"})", {"\"a.b@example.org\""}, {"\"a.b\""}},
      {R"({"type":"string","format":"ipv4"})", {"\"127.0.0.1\""}, {"\"127.0.0.256\""}},
      {R"({"type":"string","format":"ipv6"})",
       {"\"::1\"", "\"fe80::1:2\"", "\"1:2:3:4:5:6:7:8\"", "\"::\""},
       {"\"1::2::3\"", "\"12345::\""}},
      {R"({"type":"string","format":"uri"})",
       {"\"https://example.org/a%20b?c=d#e\""},
       {"\"example.org\"", "\"http:// x\""}},
      {R"({"type":"string","format":"hostname"})", {"\"a-b.example.org\""}, {"\"-a\"", "\"a..b\""}},
      {R"({"type":"string","format":"uuid","maxLength":40})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"1\""}},
  });
}

TEST(JsonSchema, KeepsMembers) {
  check_texts({
      {R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"null"}},"required":["a"]})",
       {R"({"b":1,"a":null})", R"({"a":null})", "{ \"b\": 1,\n \"a\": null }"},
       {R"({"a":null,"b":1})", R"({"b":1})", "{}", R"({"a":null,"c":1})", R"({,"a":null})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"c":1})", R"({"a":1,"c":2})", R"({"b":1,"c":2})",
        R"({"a":1,"b":2,"c":3})"},
       {R"({"c":1,"a":2})", R"({"a":1,})", R"({"a":1,"a":2})"}},
      {R"({"type":"object","required":["a"],"additionalProperties":{"type":"integer"}})",
       {R"({"a":1})", R"({"a":1,"b":2})"},
       {"{}", R"({"b":2})"}},
      {R"({"properties":{"a":{"type":"null"},"ab":{}},"additionalProperties":{"type":"integer"}})",
       {R"({"a":null,"x":1,"abc":2,"":3})", R"({"x":1})", "{}"},
       {R"({"a":1})", R"({"x":null})", R"({"x":1,"a":null})"}},
      {R"({"additionalProperties":false})", {"{}", "{ }"}, {R"({"a":1})"}},
      {R"({"patternProperties":{"^n_":{"type":"integer"}}})", {"{}", R"({"n_a":1})"}, {R"({"n_a":"x"})", R"({"b":1})"}},
      {R"({"patternProperties":{"^n_":{"type":"integer"},"s$":{"maximum":3}},)"
       R"("additionalProperties":{"type":"boolean"}})",
       {R"({"n_a":7,"x":true,"n_s":2,"ys":1.5})"},
       {R"({"n_s":7})", R"({"x":1})", R"({"n_a":true})"}},
      {R"({"properties":{"n_a":{"minimum":5}},"patternProperties":{"^n_":{"type":"integer"}}})",
       {R"({"n_a":5,"n_b":1})"},
       {R"({"n_a":4})", R"({"n_a":5.5})"}},
      {R"({"propertyNames":{"pattern":"^[a-z]{1,3}$"}})", {R"({"abc":1})", "{}"}, {R"({"abcd":1})", R"({"":1})"}},
      {R"({"propertyNames":{"enum":["x","y"]},"additionalProperties":{"type":"integer"}})",
       {"{}", R"({"y":1})", R"({"x":1,"y":2})"},
       {R"({"z":1})"}},
      {R"({"type":"object","minProperties":1})", {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}"}},
      {R"({"type":"object","maxProperties":2})", {"{}", R"({"a":1,"b":2})"}, {R"({"a":1,"b":2,"c":3})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}},"minProperties":2})",
       {R"({"a":1,"c":2})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"b":1})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}},"required":["b"],"maxProperties":2})",
       {R"({"b":1})", R"({"a":1,"b":2})", R"({"b":1,"c":2})"},
       {R"({"a":1,"b":2,"c":3})"}},
  });
}

TEST(JsonSchema, WritesNothingForCountsThatDoNotMeet) {
  check_texts({{R"({"anyOf":[{"type":"null"},{"allOf":[{"type":"object","minProperties":3,"properties":{"b":{}}},
                        {"maxProperties":2,"additionalProperties":true}]}]})",
                {"null"},
                {R"({"b":1,"c":2})"}}});
}

TEST(JsonSchema, KeepsItems) {
  check_texts({
      {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
       {"[1,2]", "[1, 2,\n3]"},
       {"[1]", "[1,2,3,4]", "[]", "[1,\"a\"]"}},
      {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
      {R"({"type":"array","maxItems":1,"uniqueItems":true})", {"[]", "[1]"}, {"[1,1]"}},
      {R"({"prefixItems":[{"type":"null"},{"type":"boolean"}]})",
       {"[null,true]"},
       {"[null]", "[true,null]", "[null,true,1]"}},
      {R"({"prefixItems":[{"type":"null"},{"type":"boolean"}],"minItems":1,"items":{"type":"integer"}})",
       {"[null]", "[null,true,1,2]"},
       {"[]", "[null,1]"}},
      {R"({"items":[{"type":"null"}],"additionalItems":{"type":"integer"},"minItems":0})",
       {"[]", "[null]", "[null,1]"},
       {"[1]"}},
      {R"({"type":"array","items":{"type":"integer"},"allOf":[{"items":{"minimum":3}}]})", {"[3,4]", "[]"}, {"[2]"}},
  });
}

TEST(JsonSchema, KeepsAlternativesAndReferences) {
  check_texts({
      {R"({"anyOf":[{"type":"integer"},{"const":"x"}]})", {"1", "\"x\""}, {"\"y\"", "null"}},
      {R"({"type":"object","properties":{"k":{"type":"string"}},)"
       R"("anyOf":[{"required":["k"]},{"properties":{"n":{"type":"integer"}},"required":["n"]}]})",
       {R"({"k":"a"})", R"({"k":"a","n":1})", R"({"n":1})"},
       {"{}", R"({"n":"x"})"}},
      {R"({"anyOf":[{"minimum":3},{"maximum":1}],)"
       R"("allOf":[{"type":"integer"},{"anyOf":[{"multipleOf":2},{"multipleOf":3}]}]})",
       {"0", "-3", "4", "9"},
       {"2", "1", "5"}},
      {R"({"$ref":"#/$defs/a~1b%20c","maxLength":2,"$defs":{"a/b c":{"type":"string"}}})",
       {"\"ab\""},
       {"\"abc\"", "1"}},
      {R"({"properties":{"next":{"$ref":"#"},"v":{"type":"integer"}},"required":["v"]})",
       {R"({"next":{"next":{"v":1},"v":2},"v":3})"},
       {R"({"next":{},"v":1})"}},
      {R"({"properties":{"a":{"type":"integer"},"b":{"$ref":"#/properties/a"}}})",
       {R"({"a":1,"b":2})"},
       {R"({"b":"x"})"}},
      {R"({"oneOf":[{"type":"null"},{"type":"integer"}]})", {"null", "3"}, {"\"\""}},
      {R"({"oneOf":[{"type":["string","null"]},{"type":["boolean","integer"]}]})", {"null", "3", "true"}, {"[]"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"propertyNames":false})", {"{}"}, {R"({"a":1})"}},
      {R"({"allOf":[{"$ref":"#/$defs/base"},{"properties":{"b":{"type":"null"}},"required":["b"]}],)"
       R"("unevaluatedProperties":false,
          "$defs":{"base":{"type":"object","properties":{"a":{"type":"null"}}}}})",
       {R"({"b":null})", R"({"a":null,"b":null})"},
       {"{}", R"({"b":null,"c":1})"}},
  });
}

TEST(JsonSchema, TakesTheOrdinarySchemasOfClients) {
  for (
      const char* schema : {
          R"({"type":"object","properties":{"price":{"type":"number","minimum":0,)"
          R"("exclusiveMaximum":1000.5}},"required":["price"]})",
          R"({"type":"number","exclusiveMinimum":0,"maximum":1})",
          R"({"type":"object","properties":{"link":{"type":"string","format":"uri"}},"required":["link"]})",
          R"({"type":"string","nullable":true})",
          R"({"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false})",
          R"({"type":"object","minProperties":1,"additionalProperties":{"type":"number"}})",
          R"({"type":"object","maxProperties":3})",
          R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"}})",
          R"({"type":"string","pattern":"[0-9]{3}"})",
          R"({"type":"string","pattern":"^[a-z]+$","minLength":3,"maxLength":8})",
          R"({"type":"integer","multipleOf":5,"minimum":0,"maximum":100})",
          R"({"type":"number","multipleOf":0.01})",
          R"({"type":"string","format":"hostname"})",
          R"({"type":"string","format":"ipv6"})",
          R"({"type":"string","format":"duration"})",
          R"({"allOf":[{"type":"object",)"
          R"("properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":3}},"required":["a"]}]})",
          R"({"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"null"},"b":{"type":"null"}}})",
          R"({"type":"array","items":{"$ref":"#/definitions/x"},"minItems":1,)"
          R"("definitions":{"x":{"type":"string","minLength":1}}})",
      }) {
    EXPECT_TRUE(write_schema_grammar(json::parse(schema), "schema", true)) << schema;
  }
}

TEST(JsonSchema, NamesWhatCannotBeKept) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"array","uniqueItems":true})", "# uniqueItems"},
      {R"({"type":"array","contains":{"const":1}})", "# contains"},
      {R"({"properties":{"a/b":{"if":{},"then":{}}}})", "#/properties/a~1b if"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "# oneOf"},
      {R"({"oneOf":[{"const":1},{"const":1.0}]})", "# oneOf"},
      {R"({"oneOf":[{"type":["object","null"],"properties":{"k":{"const":1}},"required":["k"]},)"
       R"({"type":["object","null"],"properties":{"k":{"const":2}},"required":["k"]}]})",
       "# oneOf"},
      {R"({"type":"object","unevaluatedProperties":false,"enum":[{"a":1},{}]})", "# unevaluatedProperties"},
      {R"({"unevaluatedItems":false,"const":[1]})", "# unevaluatedItems"},
      {R"({"type":"string","pattern":"^(?=a)b$"})", "# pattern"},
      {R"({"items":{"format":"regex"}})", "#/items format"},
      {R"({"type":"object","not":{"required":["a"]}})", "# not"},
      {R"({"type":"object","minProperties":2})", "# minProperties"},
      {R"({"type":"object","dependentRequired":{"a":["b"]}})", "# dependentRequired"},
      {R"({"anyOf":[{"x":1}]})", "#/anyOf/0 x"},
      {R"({"allOf":[{"unevaluatedProperties":false},{"properties":{"a":{}}}]})", "#/allOf/0 unevaluatedProperties"},
  };
  for (const auto& [schema, dropped] : cases) {
    const auto written = write_schema_grammar(json::parse(schema), "schema", false);
    ASSERT_TRUE(written) << schema << written.error().message;
    ASSERT_FALSE(written->dropped.empty()) << schema;
    EXPECT_EQ(written->dropped.front(), dropped) << schema;
    const auto strict = write_schema_grammar(json::parse(schema), "schema", true);
    ASSERT_FALSE(strict) << schema;
    const std::string keyword = std::string(dropped).substr(std::string(dropped).rfind(' ') + 1);
    EXPECT_TRUE(strict.error().field.ends_with('.' + keyword)) << strict.error().field;
    EXPECT_NE(strict.error().message.find(keyword + " at #"), std::string::npos) << strict.error().message;
  }
}

TEST(JsonSchema, RefusesWhatIsNoSchemaOrFitsNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(false)", "schema"},
      {R"("string")", "schema"},
      {R"({"type":"date"})", "schema.type"},
      {R"({"type":[]})", "schema.type"},
      {R"({"enum":[]})", "schema.enum"},
      {R"({"type":"string","enum":[1]})", "schema.enum"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "schema.minLength"},
      {R"({"type":"string","minLength":-1})", "schema.minLength"},
      {R"({"type":"integer","minimum":2,"maximum":1})", "schema.minimum"},
      {R"({"type":"number","minimum":"1"})", "schema.minimum"},
      {R"({"type":"number","multipleOf":0})", "schema.multipleOf"},
      {R"({"type":"string","pattern":"(a"})", "schema.pattern"},
      {R"({"type":"string","pattern":"*a"})", "schema.pattern"},
      {R"({"type":"string","pattern":"\\c"})", "schema.pattern"},
      {R"({"type":"string","pattern":"\\c1"})", "schema.pattern"},
      {R"({"required":["a"],"properties":{"a":{}},"propertyNames":false})", "schema.properties.a"},
      {R"({"properties":{"a":false},"required":["a"]})", "schema.properties.a"},
      {R"({"properties":[]})", "schema.properties"},
      {R"({"required":"a"})", "schema.required"},
      {R"({"anyOf":[]})", "schema.anyOf"},
      {R"({"prefixItems":[]})", "schema.prefixItems"},
      {R"({"items":false,"minItems":1})", "schema.minItems"},
      {R"({"required":["a"],"unevaluatedProperties":false})", "schema.required"},
      {R"({"$ref":"#/$defs/none"})", "schema.$ref"},
      {R"({"$ref":"https://example.org/other"})", "schema.$ref"},
      {R"({"$ref":"#"})", "schema.$ref"},
      {R"({"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"$ref":"#/$defs/B"},{"type":"null"}]},)"
       R"("B":{"allOf":[{"$ref":"#/$defs/A"}]}}})",
       "schema.$defs.B.allOf[0].$ref"},
  };
  for (const auto& [schema, field] : cases) {
    const auto written = write_schema_grammar(json::parse(schema), "schema", false);
    ASSERT_FALSE(written) << schema;
    EXPECT_EQ(written.error().field, field) << schema << ": " << written.error().message;
  }
}

TEST(JsonSchema, SaysWhereInFewBytes) {
  std::string schema = R"({"type":"date"})";
  for (int i = 0; i < 12; ++i) schema = R"({"properties":{")" + std::string(200, 'n') + "é" + R"(":)" + schema + "}}";
  const auto written = write_schema_grammar(json::parse(schema), "schema", false);
  ASSERT_FALSE(written);
  EXPECT_LT(written.error().message.size(), 1000u);
  EXPECT_TRUE(written.error().field.ends_with(".type"));
}

// Costs that grow faster than the schema end in a refusal.
TEST(JsonSchema, BoundsWhatASchemaBecomes) {
  std::string groups = R"({"allOf":[)";
  for (int i = 0; i < 20; ++i) {
    const std::string name = "\"p" + std::to_string(i) + "\"";
    groups += std::string(i > 0 ? "," : "") + R"({"anyOf":[{"required":[)" + name + R"(]},{"properties":{)" + name +
              R"(:{}}}]})";
  }
  EXPECT_FALSE(write_schema_grammar(json::parse(groups + "]}"), "schema", false));
  EXPECT_FALSE(write_schema_grammar(json::parse(R"({"type":"string","pattern":"a.{200}b.{200}c"})"), "schema", false));
  EXPECT_FALSE(
      write_schema_grammar(json::parse(R"({"type":"string","pattern":"((a{1000}){1000}){1000}"})"), "s", true));
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 3000; ++i) {
    chain += "\"d" + std::to_string(i) + R"(":{"$ref":"#/$defs/d)" + std::to_string(i + 1) + "\"},";
  }
  EXPECT_TRUE(write_schema_grammar(json::parse(chain + R"("d3000":{"type":"null"}}})"), "schema", true));
}

TEST(JsonSchema, WritesPropertiesInAnyOrderWhereTold) {
  const char* three = R"({"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["a","b"]})";
  check_texts({{three, {R"({"a":1,"b":2,"c":3})"}, {R"({"c":3,"a":1,"b":2})"}}});
  check_texts(
      {
          {three,
           {R"({"a":1,"b":2})", R"({"b":2,"a":1})", R"({"c":3,"b":2,"a":1})", R"({"b": 2, "c": 3, "a": 1 })"},
           {R"({"a":1})", R"({"c":3,"b":2})", R"({"a":1,"b":2,"a":1})", R"({"b":2,"a":1,})", R"({"b":1,"a":2})", "{}"}},
          {R"({"properties":{"a":{},"b":{}},"additionalProperties":{"const":0},"maxProperties":2})",
           {"{}", R"({"b":1,"a":1})", R"({"b":1,"x":0})", R"({"x":0,"y":0})"},
           {R"({"b":1,"a":1,"x":0})", R"({"b":1,"x":1})"}},
          {R"({"properties":{"a":{},"b":{},"c":{}},"minProperties":2})",
           {R"({"c":1,"a":1})", R"({"c":1,"b":1,"a":1})"},
           {R"({"c":1})", R"({"c":1,"c":1})"}},
      },
      SchemaOrder::any);
  // A rule for each set of what is there already: only so many properties.
  std::string nine = R"({"required":["i","a"],"properties":{"a":{"const":0})";
  for (const char name : std::string("bcdefghi")) nine += std::string(R"(,")") + name + R"(":{"const":0})";
  nine += "}}";
  check_texts({{nine.c_str(), {R"({"a":0,"i":0})"}, {R"({"i":0,"a":0})"}}}, SchemaOrder::any);
}

}  // namespace
}  // namespace chasqui
