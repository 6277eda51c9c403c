#include "api/fields.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace chasqui
