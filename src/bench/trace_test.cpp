#include "bench/trace.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

TEST(Trace, ReadsLines) {
  const auto trace = parse_trace(
      "{\"at_ms\":0,\"prompt_words\":3,\"max_tokens\":4}\n\n"
      "{\"at_ms\":12.5,\"prompt\":\"hi\",\"max_tokens\":1,\"class\":\"standard\",\"key\":\"k\"}");
  ASSERT_TRUE(trace.has_value());
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[0].prompt_words, 3);
  EXPECT_EQ((*trace)[1].at_s, 0.0125);
  EXPECT_EQ((*trace)[1].prompt, "hi");
  EXPECT_EQ((*trace)[1].priority, "standard");
  EXPECT_EQ((*trace)[1].key, "k");
}

TEST(Trace, ComplaintsNameTheLine) {
  const std::string first = "{\"at_ms\":5,\"prompt_words\":3,\"max_tokens\":4}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no requests"},
      {"x", "line 1: must be a JSON object"},
      {first + "[]", "line 2: must be a JSON object"},
      {first + "{\"at_ms\":4,\"prompt_words\":3,\"max_tokens\":4}", "line 2: at_ms must not go back"},
      {"{\"prompt_words\":3,\"max_tokens\":4}", "line 1: at_ms"},
      {"{\"at_ms\":-1,\"prompt_words\":3,\"max_tokens\":4}", "at_ms must be 0"},
      {"{\"at_ms\":1,\"prompt_words\":3,\"max_tokens\":0}", "max_tokens must be 1"},
      {"{\"at_ms\":1,\"max_tokens\":1}", "prompt_words must be 1"},
      {"{\"at_ms\":1,\"prompt\":3,\"max_tokens\":1}", "prompt must be a text"},
      {"{\"at_ms\":1,\"prompt\":\"x\",\"max_tokens\":1,\"class\":\"vip\"}", "class must be interactive"},
  };
  for (const auto& [text, part] : cases) {
    const auto trace = parse_trace(text);
    ASSERT_FALSE(trace.has_value()) << text;
    EXPECT_NE(trace.error().message.find(part), std::string::npos) << trace.error().message;
  }
}

}  // namespace
}  // namespace chasqui::bench
