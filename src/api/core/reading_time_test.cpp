#include "api/core/reading_time.h"

#include <string>

#include <gtest/gtest.h>

#include "net/offload.h"

namespace chasqui {
namespace {

constexpr Duration kLong = net::OffloadPool::kLong;

TEST(ReadingTime, GrowsWithTheBody) {
  EXPECT_EQ(reading_can_wait(""), Duration::zero());
  EXPECT_EQ(reading_can_wait("prompt=\"a\""), microseconds(1000));
  EXPECT_LT(reading_can_wait(std::string(9'999, 'x')), kLong);
  EXPECT_EQ(reading_can_wait(std::string(10'000, 'x')), kLong);
  EXPECT_EQ(reading_can_wait(std::string(1'000'000, 'x')), kLong);
}

TEST(ReadingTime, GrowsWithTheNumberOfElements) {
  const auto repeated = [](int count, std::string_view element) {
    std::string out = "[";
    for (int i = 0; i < count; ++i) out += element;
    return out + ']';
  };
  EXPECT_LT(reading_can_wait(repeated(50, R"({"role":"user","content":""},)")), kLong);
  EXPECT_EQ(reading_can_wait(repeated(300, R"({"role":"user","content":""},)")), kLong);
  EXPECT_LT(reading_can_wait(repeated(300, R"("a",)")), kLong);
  EXPECT_EQ(reading_can_wait(repeated(2000, R"("a",)")), kLong);
}

TEST(ReadingTime, OfWhatIsNoBody) {
  EXPECT_EQ(reading_can_wait(std::size_t{5}), microseconds(500));
  EXPECT_EQ(reading_can_wait(std::size_t{10'000}), kLong);
  EXPECT_EQ(writing_can_wait(100'000), Duration::zero());
  EXPECT_EQ(writing_can_wait(1'000'000), kLong);
}

TEST(ReadingTime, IsLongWhereRulesAreToBeRead) {
  for (const char* const body :
       {R"({"prompt":"a","grammar":"root ::= \"b\""})", R"({"json_schema":{"type":"string"}})",
        R"({"messages":[],"tools" : [{}]})", R"({"response_format":{"type":"json_object","schema":{}}})",
        R"({"model":"m","format":{"type":"object"}})", R"({"text":{"format":{"type":"json_schema"}}})",
        R"({"tools":[{"name":"a","input_schema":{}}]})", R"({"functions":[{"name":"a","parameters":{}}]})",
        R"({"\u0067rammar":"root ::= [a]"})", R"({"json\u005fschema":{}})", R"({"\u0074ools":[]})"}) {
    EXPECT_EQ(reading_can_wait(body), kLong) << body;
  }
}

TEST(ReadingTime, IsShortForWordsAboutThem) {
  for (const char* const body :
       {R"({"messages":[{"role":"user","content":"Which tools check a schema?"}]})",
        R"({"messages":[{"role":"user","content":"What is \"grammar\" in \"pattern\"?"}]})",
        R"({"prompt":"caf\u00e9 \u001b \u003cb\u003e \u2014"})", R"({"prompt":"\u00")", R"({"prompt":")"}) {
    EXPECT_LT(reading_can_wait(body), kLong) << body;
  }
}

}  // namespace
}  // namespace chasqui
