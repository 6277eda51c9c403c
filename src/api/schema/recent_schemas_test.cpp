#include "api/schema/recent_schemas.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace chasqui {
namespace {

namespace json = boost::json;

class RecentSchemasTest : public ::testing::Test {
 protected:
  Result<SchemaGrammar> write(const std::string& text, bool strict = false, SchemaOrder order = SchemaOrder::written) {
    return recent_.write(json::parse(text), text, "schema", strict, order);
  }
  static std::string of_size(std::size_t bytes, int number) {
    return json::serialize(json::object{{"const", std::to_string(number) + std::string(bytes, 'x')}});
  }

  SchemaMetrics metrics_;
  RecentSchemas recent_{metrics_};
};

TEST_F(RecentSchemasTest, GiveWhatWasWritten) {
  const std::string text = R"({"type":"object","properties":{"a":{"type":"string","pattern":"^[ab]{1,9}$"}}})";
  const auto first = write(text);
  const auto again = write(text);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->text, again->text);
  EXPECT_EQ(first->text, write_schema_grammar(json::parse(text), "schema", false)->text);
  EXPECT_EQ(metrics_.kept.value(), 1u);
}

TEST_F(RecentSchemasTest, TellWhatARequestWishesApart) {
  const std::string text = R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}})";
  const auto in_order = write(text);
  const auto in_any = write(text, false, SchemaOrder::any);
  ASSERT_TRUE(in_order && in_any);
  EXPECT_NE(in_order->text, in_any->text);
  EXPECT_TRUE(write(text, true));
  EXPECT_EQ(metrics_.kept.value(), 0u);
}

TEST_F(RecentSchemasTest, NameThePathOfEachMistake) {
  const std::string text = R"({"type":"object","minProperties":-1})";
  const auto here = recent_.write(json::parse(text), text, "format", false, SchemaOrder::written);
  const auto there = recent_.write(json::parse(text), text, "json_schema", false, SchemaOrder::written);
  ASSERT_FALSE(here || there);
  EXPECT_NE(here.error().message, there.error().message);
}

// A schema and its grammar are about as large, so that seven of them have room.
TEST_F(RecentSchemasTest, ForgetWhatWasNotUsedForLongest) {
  constexpr std::size_t kLarge = RecentSchemas::kBytesMax / 16 + 1000;
  ASSERT_TRUE(write(of_size(kLarge, 0)));
  ASSERT_TRUE(write(of_size(kLarge, 1)));
  ASSERT_TRUE(write(of_size(kLarge, 0)));
  EXPECT_EQ(metrics_.kept.value(), 1u);
  for (int i = 2; i < 8; ++i) ASSERT_TRUE(write(of_size(kLarge, i)));
  ASSERT_TRUE(write(of_size(kLarge, 0)));
  EXPECT_EQ(metrics_.kept.value(), 2u) << "it was used later than others";
  ASSERT_TRUE(write(of_size(kLarge, 1)));
  EXPECT_EQ(metrics_.kept.value(), 2u) << "there was no room for it";
  const std::string too_large(RecentSchemas::kBytesMax, 'x');  // no schema of a request is
  ASSERT_TRUE(recent_.write(json::object{{"type", "string"}}, too_large, "schema", false, SchemaOrder::written));
  ASSERT_TRUE(write(of_size(kLarge, 1)));
  EXPECT_EQ(metrics_.kept.value(), 3u) << "one that is too large does not take the room of others";
}

}  // namespace
}  // namespace chasqui
