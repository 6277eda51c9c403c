#include "api/delivery/stream_routes.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace chasqui {
namespace {

TEST(StreamLookup, LeavesOutNamesThatNoStreamCanHave) {
  const std::string longest(kSizeLimit<"resume_id_bytes">, 'x');
  const auto names = read_stream_lookup(R"({"conversation_ids":["a",")" + longest + R"(y",")" + longest + R"(","b"]})");
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(*names, (std::vector<std::string>{"a", longest, "b"}));
}

TEST(StreamLookup, RefusesWhatIsNoName) {
  for (const char* body : {R"({"conversation_ids":"a"})", R"({"conversation_ids":["a",1]})", "{}"}) {
    const auto names = read_stream_lookup(body);
    ASSERT_FALSE(names) << body;
    EXPECT_EQ(names.error().field, "conversation_ids") << body;
  }
}

}  // namespace
}  // namespace chasqui
