// Bodies of /v1/messages, from JSON to a request. The simulated model stands behind them; no request is submitted.
#include <gtest/gtest.h>

#include "api/anthropic/anthropic.h"
#include "api/core/fake_node.h"

namespace chasqui {
namespace {

class MessagesTest : public ::testing::Test {
 protected:
  // Whether the client of such a request is expected back.
  bool returns(const std::string& members) {
    const auto answer = prepare_messages(fake_.served, caller_, R"({"max_tokens":4,)" + members + "}");
    EXPECT_TRUE(answer) << answer.error().message;
    return answer && answer->request->returns;
  }

  FakeNode fake_;
  Caller caller_;
};

constexpr const char* kHello = R"("messages":[{"role":"user","content":"hello"}])";
constexpr const char* kTool = R"({"name":"a","input_schema":{"type":"object"}})";
constexpr const char* kMark = R"("cache_control":{"type":"ephemeral"})";

TEST_F(MessagesTest, AClientThatMarksWhatItWillSendAgainIsExpectedBack) {
  const std::string hello = kHello;
  const std::string mark = kMark;
  EXPECT_FALSE(returns(hello));
  EXPECT_FALSE(returns(R"("system":[{"type":"text","text":"Be brief."}],)" + hello));
  EXPECT_TRUE(returns(mark + "," + hello));
  EXPECT_TRUE(returns(R"("system":[{"type":"text","text":"a"},{"type":"text","text":"x",)" + mark + "}]," + hello));
  EXPECT_TRUE(returns(R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b",)" +
                      mark + "}]}]"));
  EXPECT_FALSE(returns(R"("messages":[{"role":"user","content":"say \"cache_control\""}])"));
  EXPECT_FALSE(returns(R"("cache_control":null,)" + hello));
}

TEST_F(MessagesTest, AClientWithToolsIsExpectedBackUnlessItWantsOneCall) {
  const std::string tools = std::string(R"("tools":[)") + kTool + "]," + kHello;
  EXPECT_TRUE(returns(tools));
  EXPECT_TRUE(returns(R"("tool_choice":{"type":"auto"},)" + tools));
  EXPECT_FALSE(returns(R"("tool_choice":{"type":"none"},)" + tools));
  EXPECT_FALSE(returns(R"("tool_choice":{"type":"tool","name":"a"},)" + tools));
  EXPECT_TRUE(returns(R"("tool_choice":{"type":"none"},"tools":[)" + std::string(kTool) +
                      R"(],"messages":[{"role":"user","content":"go"},
      {"role":"assistant","content":[{"type":"tool_use","id":"i","name":"a","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"text"}]}])"));
}

TEST_F(MessagesTest, AClientThatNamesItsSessionIsExpectedBack) {
  caller_.in_session = true;
  EXPECT_TRUE(returns(kHello));
}

}  // namespace
}  // namespace chasqui
