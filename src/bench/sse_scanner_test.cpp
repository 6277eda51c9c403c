#include "bench/sse_scanner.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

constexpr std::string_view kStream =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n"
    ": a comment with \"content\":\"x\"\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n"
    "data:{\"choices\": [{\"delta\": {\"content\": \"lo\"}}]}\n\n"
    "data: {\"choices\":[{\"text\":\"!\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":4,"
    "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\n"
    "data: [DONE]\n\n";

std::vector<std::int32_t> scan(SseScanner& scanner, std::string_view text, std::size_t piece) {
  std::vector<std::int32_t> chunks;
  for (std::size_t at = 0; at < text.size(); at += piece) scanner.feed(text.substr(at, piece), chunks);
  return chunks;
}

TEST(SseScanner, FindsTheSameInPiecesOfAnySize) {
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 64U, 4096U}) {
    SseScanner scanner;
    EXPECT_EQ(scan(scanner, kStream, piece), (std::vector<std::int32_t>{1, 1, 1})) << piece;
    EXPECT_EQ(scanner.tokens(), 3);
    EXPECT_EQ(scanner.usage().completion, 4);
    EXPECT_EQ(scanner.usage().prompt, 7);
    EXPECT_EQ(scanner.usage().cached, 2);
    EXPECT_TRUE(scanner.done());
    EXPECT_FALSE(scanner.failed());
  }
}

TEST(SseScanner, IsNotDeceivedByWhatTheModelSays) {
  SseScanner scanner;
  const auto chunks = scan(scanner,
                           R"(data: {"delta":{"content":"{\"content\":\"x\",\"completion_tokens\":99}"}})"
                           "\n",
                           1000);
  EXPECT_EQ(chunks.size(), 1U);
  EXPECT_EQ(scanner.usage().completion, -1);
  scan(scanner,
       R"(data: {"delta":{"tool":"\"content\":\"x\""}})"
       "\n",
       1000);
  EXPECT_EQ(scanner.tokens(), 1);
}

TEST(SseScanner, CountsTheTokensOfAChunkByRunningUsage) {
  SseScanner scanner;
  const auto chunks = scan(scanner,
                           "data: {\"text\":\"a\",\"usage\":{\"completion_tokens\":3}}\n"
                           "data: {\"text\":\"b\",\"usage\":{\"completion_tokens\":4}}\n"
                           "data: {\"text\":\"c\",\"usage\":null}\n",
                           5);
  EXPECT_EQ(chunks, (std::vector<std::int32_t>{3, 1, 1}));
  EXPECT_EQ(scanner.tokens(), 5);
}

TEST(SseScanner, SeesErrors) {
  for (const std::string_view text : {"data: {\"error\":{\"code\":500}}\n", "event: error\n", "error: {}\n"}) {
    SseScanner scanner;
    scan(scanner, text, 1);
    EXPECT_TRUE(scanner.failed()) << text;
  }
}

TEST(SseScanner, KeepsNoEndlessLine) {
  SseScanner scanner;
  scan(scanner, std::string(SseScanner::kLineMax + 1, 'x'), 4096);
  EXPECT_TRUE(scanner.failed());
}

}  // namespace
}  // namespace chasqui::bench
