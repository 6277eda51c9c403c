#include "model/llama_log.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

using Lines = std::vector<std::pair<LogLevel, std::string>>;

struct Capture {
  Lines lines;
  LlamaLog log{[this](LogLevel level, std::string_view line) { lines.emplace_back(level, line); }};
};

TEST(LlamaLog, JoinsPieces) {
  Capture capture;
  capture.log.feed(LogLevel::info, "loading ");
  capture.log.continue_line(".");
  capture.log.continue_line("..\n");
  EXPECT_EQ(capture.lines, (Lines{{LogLevel::info, "loading ..."}}));
}

TEST(LlamaLog, SplitsLinesAndDropsEmptyOnes) {
  Capture capture;
  capture.log.feed(LogLevel::warning, "one\n\ntwo  \n");
  EXPECT_EQ(capture.lines, (Lines{{LogLevel::warning, "one"}, {LogLevel::warning, "two"}}));
}

TEST(LlamaLog, ANewLevelEndsAnUnfinishedLine) {
  Capture capture;
  capture.log.feed(LogLevel::info, "half");
  capture.log.feed(LogLevel::error, "whole\n");
  EXPECT_EQ(capture.lines, (Lines{{LogLevel::info, "half"}, {LogLevel::error, "whole"}}));
}

}  // namespace
}  // namespace chasqui
