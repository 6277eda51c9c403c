#include "api/core/gateway_headers.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

Result<GatewayHeaders> read_gateway(std::initializer_list<net::HttpHeaders::Field> headers) {
  net::HttpRequest request;
  request.headers = net::HttpHeaders(headers);
  return read_gateway_headers(request);
}

TEST(GatewayHeaders, AreTargetsInMilliseconds) {
  const auto said = read_gateway({{"X-LLM-D-SLO-TTFT-MS", "250"}, {"x-llm-d-slo-tpot-ms", "12.5"}});
  ASSERT_TRUE(said);
  EXPECT_EQ(said->ttft, milliseconds(250));
  EXPECT_EQ(said->tpot, microseconds(12'500));
  EXPECT_EQ(said->group, 0u);
  EXPECT_EQ(read_gateway({})->ttft, Duration::zero());
}

TEST(GatewayHeaders, HaveOldNamesThatCountLess) {
  EXPECT_EQ(read_gateway({{"x-slo-ttft-ms", "70"}})->ttft, milliseconds(70));
  EXPECT_EQ(read_gateway({{"x-slo-ttft-ms", "70"}, {"x-llm-d-slo-ttft-ms", "80"}})->ttft, milliseconds(80));
  const auto old_group = read_gateway({{"x-gateway-inference-fairness-id", "a"}})->group;
  EXPECT_EQ(old_group, read_gateway({{"x-llm-d-inference-fairness-id", "a"}})->group);
}

TEST(GatewayHeaders, TellGroupsApart) {
  const auto a = read_gateway({{"x-llm-d-inference-fairness-id", "team-a"}})->group;
  EXPECT_NE(a, 0u);
  EXPECT_NE(a, read_gateway({{"x-llm-d-inference-fairness-id", "team-b"}})->group);
  EXPECT_EQ(read_gateway({{"x-llm-d-inference-fairness-id", ""}})->group, 0u);
}

TEST(GatewayHeaders, ThatAreWrongAreNamed) {
  for (const char* bad : {"", "x", "0", "-1", "0.5", "3600001", "1e999", "nan", "inf", "12ms", " 5", "0x10"}) {
    for (const char* name : {"x-llm-d-slo-ttft-ms", "x-slo-ttft-ms", "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms"}) {
      const auto said = read_gateway({{name, bad}});
      ASSERT_FALSE(said) << name << ": " << bad;
      EXPECT_EQ(said.error().field, name);
      EXPECT_EQ(said.error().code, ErrorCode::invalid_request);
    }
  }
  const std::string longest(256, 'x'), longer(257, 'x');
  EXPECT_TRUE(read_gateway({{"x-llm-d-inference-fairness-id", longest}}));
  for (const std::string& bad : {longer, std::string("a\tb"), std::string("\xC3\xA9")}) {
    const auto said = read_gateway({{"x-llm-d-inference-fairness-id", bad}});
    ASSERT_FALSE(said) << bad;
    EXPECT_EQ(said.error().field, "x-llm-d-inference-fairness-id");
  }
}

}  // namespace
}  // namespace chasqui
