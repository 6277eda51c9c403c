#include "base/error.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Result, HoldsAValue) {
  Result<std::string> result = std::string("hummingbird");
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(result.value(), "hummingbird");
  EXPECT_EQ(*result, "hummingbird");
  EXPECT_EQ(result->size(), 11u);
}

TEST(Result, HoldsAnErrorWithItsField) {
  const Result<int> result = invalid_field("top_p", "top_p must be a number between 0 and 1");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(result.error().field, "top_p");
  EXPECT_EQ(result.error().message, "top_p must be a number between 0 and 1");
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(*result);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, OfVoidIsSuccessUnlessAnErrorIsGiven) {
  EXPECT_TRUE(Result<void>{}.has_value());
  const Result<void> failed = Error{ErrorCode::overloaded, "retry later", ""};
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::overloaded);
}

TEST(ErrorCode, EveryNameIsDifferentSinceItIsAMetricLabel) {
  std::set<std::string_view> names;
  constexpr int kCodes = static_cast<int>(ErrorCode::internal) + 1;
  for (int code = 0; code < kCodes; ++code) names.insert(name(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kCodes));
  EXPECT_EQ(kCodes, 14) << "the list of codes is closed at fourteen";
  EXPECT_EQ(name(ErrorCode::context_too_long), "context_too_long");
}

TEST(Check, PassesSilentlyAndEvaluatesOnce) {
  int evaluated = 0;
  CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, LogsConditionPlaceAndNoteAndAborts) {
  EXPECT_DEATH(CHECK(1 + 1 == 3, "arithmetic"), "check failed.*1 \\+ 1 == 3.*error_test.cpp.*line=.*note=arithmetic");
  EXPECT_DEATH(CHECK(false), "check failed.*condition=false");
}

TEST(CheckDeathTest, StandsAloneInAnIfWithoutBraces) {
  const auto guarded = [](bool inner, bool outer) {
    if (outer)
      CHECK(inner);
    else
      return false;
    return true;
  };
  EXPECT_TRUE(guarded(true, true));
  EXPECT_FALSE(guarded(false, false));
  EXPECT_DEATH(guarded(false, true), "condition=inner");
}

}  // namespace
}  // namespace chasqui
