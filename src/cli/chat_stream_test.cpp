#include "cli/chat_stream.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

struct Read {
  std::string text, reasoning;
  AnswerReport report;
  AnswerSinks sinks{[this](std::string_view t) { text += t; }, [this](std::string_view t) { reasoning += t; },
                    [] { return false; }};
  ChatStream stream{sinks, report};
};

constexpr std::string_view kAnswer =
    ": place 3\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}],\"usage\":null}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\\u00e9\\n\"}}]}\n\n"
    "data:{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,"
    "\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\n"
    "data: [DONE]\n\n";

TEST(ChatStream, IsReadWhereverItIsCut) {
  for (std::size_t size = 1; size <= kAnswer.size(); ++size) {
    Read read;
    for (std::size_t at = 0; at < kAnswer.size(); at += size) read.stream.feed(kAnswer.substr(at, size));
    EXPECT_EQ(read.text, "a\u00e9\n") << size;
    EXPECT_EQ(read.report.text, read.text);
    EXPECT_EQ(read.reasoning, "hm");
    EXPECT_EQ(read.report.finish_reason, "stop");
    EXPECT_EQ(read.report.prompt_tokens, 7);
    EXPECT_EQ(read.report.cached_tokens, 5);
    EXPECT_EQ(read.report.completion_tokens, 3);
    EXPECT_TRUE(read.stream.done());
    EXPECT_EQ(read.stream.failure(), "");
  }
}

TEST(ChatStream, AnErrorWithinIsSaid) {
  Read read;
  read.stream.feed("data: {\"error\":{\"message\":\"no room\"}}\n\n");
  EXPECT_EQ(read.stream.failure(), "no room");
}

TEST(ChatStream, WhatIsNoAnswerDoesNoHarm) {
  for (const char* odd : {"data: {}\n", "data: []\n", "data: 3\n", "data: {\"choices\":3}\n",
                          "data: {\"choices\":[3]}\n", "data: {\"usage\":{\"prompt_tokens\":-5}}\n"}) {
    Read read;
    read.stream.feed(odd);
    EXPECT_EQ(read.text, "") << odd;
    EXPECT_EQ(read.report.prompt_tokens, 0) << odd;
  }
  Read read;
  read.stream.feed("data: {broken\n");
  EXPECT_NE(read.stream.failure(), "");
  Read endless;
  for (int i = 0; i < 20; ++i) endless.stream.feed(std::string(100'000, 'x'));
  EXPECT_NE(endless.stream.failure(), "");
}

}  // namespace
}  // namespace chasqui::cli
