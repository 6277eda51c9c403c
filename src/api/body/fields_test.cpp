#include "api/body/fields.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace chasqui {
namespace {

boost::json::object object(std::string_view text) { return boost::json::parse(text).as_object(); }

TEST(ParseJsonObject, SaysWhatIsWrongWithABody) {
  struct Case {
    std::string body;
    std::string_view says;
  };
  const Case cases[] = {
      {"", "empty"},
      {" \r\n\t", "empty"},
      {"{", "not valid JSON"},
      {"[1]", "must be a JSON object"},
      {"3", "must be a JSON object"},
      {R"({"a":1} x)", "not valid JSON"},
      {R"({"a":NaN})", "not valid JSON"},
      {"{\"a\":\"\xff\"}", "not valid JSON"},
      {"{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", "nested too deeply"},
  };
  for (const Case& c : cases) {
    const auto parsed = parse_json_object(c.body);
    ASSERT_FALSE(parsed) << c.body;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_request);
    EXPECT_NE(parsed.error().message.find(c.says), std::string::npos) << parsed.error().message;
  }
}

TEST(ParseJsonObject, AllowsSixtyThreeLevelsInsideTheObject) {
  EXPECT_TRUE(parse_json_object("{\"a\":" + std::string(63, '[') + std::string(63, ']') + "}"));
}

TEST(Fields, NullCountsAsAbsent) {
  const auto json = object(R"({"a":null})");
  Fields fields(json);
  EXPECT_FALSE(fields.integer("a"));
  EXPECT_FALSE(fields.string("a"));
  EXPECT_EQ(fields.array("a"), nullptr);
  EXPECT_TRUE(fields.ok());
}

TEST(Fields, AWrongTypeIsAnErrorThatNamesTheField) {
  const auto json = object(R"({"text":"x","number":1.5,"yes":true,"list":[],"huge":18446744073709551615})");
  const auto error_of = [&json](auto read) {
    Fields fields(json, "outer");
    read(fields);
    return fields.ok() ? std::string() : fields.error().field + ": " + fields.error().message;
  };
  EXPECT_EQ(error_of([](Fields& f) { f.integer("text"); }), "outer.text: outer.text must be a whole number");
  EXPECT_EQ(error_of([](Fields& f) { f.integer("number"); }), "outer.number: outer.number must be a whole number");
  EXPECT_EQ(error_of([](Fields& f) { f.integer("huge"); }), "outer.huge: outer.huge must be a whole number");
  EXPECT_EQ(error_of([](Fields& f) { f.number("yes"); }), "outer.yes: outer.yes must be a number");
  EXPECT_EQ(error_of([](Fields& f) { f.boolean("number"); }), "outer.number: outer.number must be true or false");
  EXPECT_EQ(error_of([](Fields& f) { f.string("list"); }), "outer.list: outer.list must be a string");
  EXPECT_EQ(error_of([](Fields& f) { f.array("text"); }), "outer.text: outer.text must be an array");
  EXPECT_EQ(error_of([](Fields& f) { f.object("list"); }), "outer.list: outer.list must be an object");
}

TEST(Fields, AWholeNumberMayBeWrittenAsADouble) {
  const auto json = object(R"({"a":3.0,"b":-1e3})");
  Fields fields(json);
  EXPECT_EQ(fields.integer("a"), 3);
  EXPECT_EQ(fields.integer("b"), -1000);
}

TEST(Fields, TheFirstMistakeIsKept) {
  const auto json = object(R"({"a":"x","b":"y"})");
  Fields fields(json);
  fields.integer("a");
  fields.integer("b");
  ASSERT_FALSE(fields.ok());
  EXPECT_EQ(fields.error().field, "a");
}

TEST(Json, CountsValuesWithoutATree) {
  EXPECT_EQ(json_nodes(""), 1u);
  EXPECT_EQ(json_nodes(R"("a,[{:\\\",,,")"), 1u) << "what stands in a text is none";
  EXPECT_EQ(json_nodes("[1,2,3]"), 4u);
  EXPECT_EQ(json_nodes(R"({"a":{"b":[]},"c":1})"), 8u) << "names count as well";
  EXPECT_GE(json_nodes("[[],[],[]"), 6u) << "whether it is JSON or not";
}

TEST(Json, RefusesMoreValuesThanAreAllowed) {
  std::string many = "[0";
  for (std::size_t i = 2; i < kSizeLimit<"json_nodes">; ++i) many += ",0";
  EXPECT_TRUE(parse_json(many + ']'));
  const auto refused = parse_json(many + ",0]");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("too many values"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(parse_json('"' + std::string(3 * kSizeLimit<"json_nodes">, ',') + '"'));
}

TEST(Json, IsRecognizedWithoutATree) {
  for (const char* good :
       {"{}", " [1, 2.5e3, -7, null, true, \"\\u00e9\"] \n", "3", "\"x\"", R"({"a":{"b":[false]}})"}) {
    EXPECT_TRUE(is_json(good)) << good;
  }
  for (const char* bad : {"", " ", "{", "[1,]", "{} x", "{} {}", "nul", "'x'", "{\"a\"}"}) {
    EXPECT_FALSE(is_json(bad)) << bad;
  }
  EXPECT_FALSE(is_json(std::string(100'000, '[')));
}

}  // namespace
}  // namespace chasqui
