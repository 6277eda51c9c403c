#include "base/log.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace chasqui {
namespace {

std::string as_text(LogFields fields) { return format_log_line(LogFormat::text, LogLevel::info, "hello", fields); }
std::string as_json(LogFields fields) { return format_log_line(LogFormat::json, LogLevel::info, "hello", fields); }

// The text without the time in front of it (`2026-11-21T12:00:01.123Z`); a complaint when there is none.
std::string without_time(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddZ";
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const char c = i < text.size() ? text[i] : '\0';
    if (kShape[i] == 'd' ? c < '0' || c > '9' : c != kShape[i]) return "no time: " + std::string(text);
  }
  return std::string(text.substr(kShape.size()));
}

// Leaves the settings of the process as other tests expect them.
class LogOutput : public testing::Test {
 protected:
  ~LogOutput() override { configure_log(LogLevel::info, LogFormat::text); }

  template <class Write>
  std::string written(Write write) {
    testing::internal::CaptureStderr();
    write();
    return testing::internal::GetCapturedStderr();
  }
};

TEST(LogLine, TextShowsLevelMessageAndFields) {
  EXPECT_EQ(format_log_line(LogFormat::text, LogLevel::warning, "slow step", {{"ms", 12}, {"kind", "decode"}}),
            "W slow step ms=12 kind=decode");
  EXPECT_EQ(format_log_line(LogFormat::text, LogLevel::debug, "m", {})[0], 'D');
  EXPECT_EQ(format_log_line(LogFormat::text, LogLevel::info, "m", {})[0], 'I');
  EXPECT_EQ(format_log_line(LogFormat::text, LogLevel::error, "m", {})[0], 'E');
}

TEST(LogLine, JsonIsOneObjectWithTypedValues) {
  EXPECT_EQ(as_json({{"n", -3}, {"ratio", 0.5}, {"ok", true}, {"who", std::string("x\"y")}}),
            R"({"level":"info","message":"hello","n":-3,"ratio":0.5,"ok":true,"who":"x\"y"})");
}

TEST(LogLine, LeavesOutWhatHasNoValue) {
  const std::optional<double> none, some = 0.5;
  EXPECT_EQ(as_text({{"a", none}, {"b", some}}), "I hello b=0.5");
  EXPECT_EQ(as_json({{"a", none}, {"b", some}}), R"({"level":"info","message":"hello","b":0.5})");
}

TEST(LogLine, TextQuotesWhatCouldBeMisread) {
  EXPECT_EQ(as_text({{"v", ""}}), R"(I hello v="")");
  EXPECT_EQ(as_text({{"v", "two words"}}), R"(I hello v="two words")");
  EXPECT_EQ(as_text({{"v", "a=b"}}), R"(I hello v="a=b")");
  EXPECT_EQ(as_text({{"v", "say \"x\""}}), R"(I hello v="say \"x\"")");
  EXPECT_EQ(as_text({{"v", "C:\\x"}}), R"(I hello v="C:\\x")");
  EXPECT_EQ(as_text({{"v", "/plain-value_1.0"}}), "I hello v=/plain-value_1.0");
}

TEST(LogLine, AClientCannotForgeALineOrMoveTheTerminal) {
  const std::string attack = "x\n2026-01-01T00:00:00.000Z E forged \x1b[2J\r\x7f";
  EXPECT_EQ(as_text({{"v", attack}}),
            R"(I hello v="x\n2026-01-01T00:00:00.000Z E forged \u001b[2J\r\u007f")");
  EXPECT_EQ(as_json({{"v", "\n\x1b"}}), R"({"level":"info","message":"hello","v":"\n\u001b"})");
}

TEST(LogLine, StaysValidUtf8WhateverTheValueIs) {
  EXPECT_EQ(as_text({{"v", "\xFF\xC3"}}), "I hello v=\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(as_text({{"v", "ma\xC3\xB1"
                           "ana"}}), "I hello v=\"ma\xC3\xB1"
                                     "ana\"");
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::string_view value(&c, 1);
    for (const std::string& line : {as_text({{"v", value}}), as_json({{"v", value}})}) {
      ASSERT_TRUE(is_valid_utf8(line)) << byte;
      for (const unsigned char out : line) ASSERT_TRUE(out >= 0x20 && out != 0x7f) << byte;
    }
  }
}

TEST_F(LogOutput, IsOneLineWithATimeStampInFront) {
  const std::string text = written([] { log_info("started", {{"port", 8080}}); });
  EXPECT_EQ(without_time(text), " I started port=8080\n");
  configure_log(LogLevel::info, LogFormat::json);
  const std::string json = written([] { log_info("started", {{"port", 8080}}); });
  constexpr std::string_view kBeginning = R"({"time":")";
  ASSERT_TRUE(json.starts_with(kBeginning)) << json;
  EXPECT_EQ(without_time(json.substr(kBeginning.size())), R"(","level":"info","message":"started","port":8080})" "\n");
}

TEST_F(LogOutput, HasTheLevelsOfWarningsAndErrorsInColoursWhereTheyAreWanted) {
  configure_log(LogLevel::info, LogFormat::text, true);
  EXPECT_EQ(without_time(written([] { log_info("fine", {{"n", 1}}); })), " I fine n=1\n");
  EXPECT_EQ(without_time(written([] { log_warning("odd", {{"n", 1}}); })), " \x1b[33mW\x1b[0m odd n=1\n");
  EXPECT_EQ(without_time(written([] { log_error("bad"); })), " \x1b[31mE\x1b[0m bad\n");
  configure_log(LogLevel::info, LogFormat::json, true);
  EXPECT_EQ(written([] { log_error("bad"); }).find('\x1b'), std::string::npos);
  configure_log(LogLevel::info, LogFormat::text);
  EXPECT_EQ(without_time(written([] { log_error("bad"); })), " E bad\n");
}

TEST_F(LogOutput, LeavesOutWhatIsBelowTheLevel) {
  configure_log(LogLevel::warning, LogFormat::text);
  EXPECT_FALSE(log_enabled(LogLevel::info));
  EXPECT_EQ(written([] { log_debug("no"), log_info("no"); }), "");
  const std::string out = written([] { log_warning("one"), log_error("two"); });
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
  configure_log(LogLevel::off, LogFormat::text);
  EXPECT_EQ(written([] { log_error("no"); }), "");
}

TEST_F(LogOutput, LinesOfManyThreadsDoNotMix) {
  constexpr int kThreads = 4, kLines = 200;
  const std::string filler(300, 'x');
  const std::string out = written([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kLines; ++i) log_info("line", {{"filler", filler}});
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const std::string whole = " I line filler=" + filler;
  std::size_t lines = 0;
  for (std::size_t at = 0; at < out.size(); ++lines) {
    const std::size_t end = out.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    ASSERT_EQ(without_time(out.substr(at, end - at)), whole);
    at = end + 1;
  }
  EXPECT_EQ(lines, static_cast<std::size_t>(kThreads * kLines));
}

}  // namespace
}  // namespace chasqui
