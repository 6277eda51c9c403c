#include "base/json_writer.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace chasqui {
namespace {

template <class Number>
std::string number(Number value) {
  std::string out;
  append_json_number(out, value);
  return out;
}

std::string text(std::string_view value) {
  std::string out;
  append_json_string(out, value);
  return out;
}

TEST(JsonNumber, DoublesAreShortestAndRoundOnesLookLikeIntegers) {
  EXPECT_EQ(number(0.0), "0");
  EXPECT_EQ(number(1.0), "1");
  EXPECT_EQ(number(-3.0), "-3");
  EXPECT_EQ(number(100000.0), "100000");
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(number(999999999999999.0), "999999999999999");
  EXPECT_EQ(number(1e15), "1e+15");
  EXPECT_EQ(number(1e300), "1e+300");
  EXPECT_EQ(number(-1e300), "-1e+300");
  EXPECT_EQ(number(std::numeric_limits<double>::denorm_min()), "5e-324");
}

TEST(JsonNumber, DoublesComeBackAsTheyWere) {
  const double values[] = {0.1, 1.0 / 3, 2.5e-7, 123456.789, 1e15 + 2, 9007199254740993.0, -1e-300,
                           std::numeric_limits<double>::max(), std::numeric_limits<double>::min()};
  for (const double value : values) EXPECT_EQ(std::stod(number(value)), value);
}

TEST(JsonNumber, WhatJsonDoesNotHaveIsNull) {
  EXPECT_EQ(number(std::nan("")), "null");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonNumber, IntegersReachTheEndsOfTheirTypes) {
  EXPECT_EQ(number(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(number(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(number(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

TEST(JsonString, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(text(""), R"("")");
  EXPECT_EQ(text(R"(say "hi" \ bye)"), R"("say \"hi\" \\ bye")");
  EXPECT_EQ(text("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(text(std::string_view("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(text("/</script>"), R"("/</script>")");
}

TEST(JsonString, KeepsValidUtf8AsItIs) {
  EXPECT_EQ(text("ma\xC3\xB1"
                 "ana \xE2\x82\xAC \xF0\x9F\x8F\x83"),
            "\"ma\xC3\xB1"
            "ana \xE2\x82\xAC \xF0\x9F\x8F\x83\"");
}

TEST(JsonString, ReplacesEachInvalidByte) {
  EXPECT_EQ(text("a\x80z"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(text("\xFF\xFE"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(text("cut \xE2\x82"), "\"cut \xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(text("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonString, IsValidUtf8WithoutRawControlsForEveryPairOfBytes) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const char bytes[] = {static_cast<char>(first), static_cast<char>(second)};
      const std::string out = text({bytes, 2});
      ASSERT_TRUE(is_valid_utf8(out)) << first << ' ' << second;
      for (const unsigned char c : out) ASSERT_GE(c, 0x20) << first << ' ' << second;
    }
  }
}

TEST(JsonWriter, PutsCommasBetweenValuesAndNowhereElse) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  w.field("id", "a1");
  w.key("list"), w.begin_array();
  w.number(1), w.string("two"), w.null(), w.boolean(true);
  w.begin_array(), w.end_array();
  w.begin_object(), w.end_object();
  w.end_array();
  w.key("inner"), w.begin_object();
  w.field("pi", 3.25), w.field("on", false), w.field("n", -7);
  w.end_object();
  w.key("raw"), w.raw(R"({"x":1})");
  w.end_object();
  EXPECT_EQ(out, R"({"id":"a1","list":[1,"two",null,true,[],{}],"inner":{"pi":3.25,"on":false,"n":-7},"raw":{"x":1}})");
}

TEST(JsonWriter, WritesEveryKindOfFieldWithoutTurningItIntoAnother) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  w.field("view", std::string_view("v"));
  w.field("string", std::string("s"));
  w.field("pointer", "p");  // not a boolean
  w.field("unsigned", std::numeric_limits<std::uint64_t>::max());
  w.field("small", static_cast<std::int8_t>(-5));
  w.field("flag", true);
  w.end_object();
  EXPECT_EQ(out,
            R"({"view":"v","string":"s","pointer":"p","unsigned":18446744073709551615,"small":-5,"flag":true})");
}

TEST(JsonWriter, EscapesKeysAndAppendsBehindWhatIsThere) {
  std::string out = "data: ";
  JsonWriter w(out);
  w.begin_object();
  w.field("a\"b", 1);
  w.end_object();
  EXPECT_EQ(out, "data: {\"a\\\"b\":1}");
}

}  // namespace
}  // namespace chasqui
