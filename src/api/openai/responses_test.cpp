// Bodies of /v1/responses, as the pool reads them.
#include "api/openai/responses.h"

#include <gtest/gtest.h>

#include "api/core/fake_node.h"
#include "base/limits.h"

namespace chasqui {
namespace {

class ResponseAskTest : public testing::Test, protected FakeNode {
 protected:
  Result<ResponseAsk> referring_to(const std::vector<std::string>& ids) const {
    std::string input;
    for (const std::string& id : ids) input += R"({"type":"item_reference","id":")" + id + "\"},";
    return read_response_ask(served, Caller(), R"({"input":[)" + input + R"({"role":"user","content":"x"}]})");
  }
};

TEST_F(ResponseAskTest, ItsReferencesAreSortedForTheLoop) {
  const auto ask = referring_to({"msg_c", "msg_a", "msg_c", "msg_b"});
  ASSERT_TRUE(ask) << ask.error().message;
  EXPECT_EQ(ask->references, (std::vector<std::string>{"msg_a", "msg_b", "msg_c"}));
}

TEST_F(ResponseAskTest, AReferenceLongerThanAnyIdIsNotFoundAndNotRepeated) {
  const std::string longest(kSizeLimit<"named_id_bytes">, 'm');
  const auto ask = referring_to({"msg_a", longest});
  ASSERT_TRUE(ask) << ask.error().message;
  EXPECT_EQ(ask->references.size(), 2U);
  const auto refused = referring_to({"msg_a", longest + 'm'});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_found);
  EXPECT_EQ(refused.error().field, "input");
  EXPECT_EQ(refused.error().message.find("mmm"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace chasqui
