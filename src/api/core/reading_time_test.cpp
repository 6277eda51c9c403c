#include "api/core/reading_time.h"

#include <string>

#include <gtest/gtest.h>

#include "net/offload.h"

namespace chasqui {
namespace {

constexpr Duration kLong = net::OffloadPool::kLong;

TEST(ReadingTime, GrowsWithTheBody) {
  EXPECT_EQ(reading_can_wait(""), Duration::zero());
  EXPECT_EQ(reading_can_wait(R"({"prompt":"a"})"), microseconds(1400));
  EXPECT_LT(reading_can_wait(std::string(9'999, 'x')), kLong);
  EXPECT_EQ(reading_can_wait(std::string(10'000, 'x')), kLong);
  EXPECT_EQ(reading_can_wait(std::string(1'000'000, 'x')), kLong);
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
