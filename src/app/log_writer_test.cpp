#include "app/log_writer.h"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include "base/log.h"

namespace chasqui {
namespace {

// A log that is read when the test wants it.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    close_reader();
    ::close(ends[1]);
  }
  void close_reader() {
    if (ends[0] >= 0) ::close(ends[0]);
    ends[0] = -1;
  }
  // The next line, without its end.
  std::string line() {
    std::string out;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) out += c;
    return out;
  }
  std::string rest() {
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    std::string out;
    char some[4096];
    for (ssize_t n; (n = ::read(ends[0], some, sizeof some)) > 0;) out.append(some, static_cast<std::size_t>(n));
    return out;
  }
  int ends[2] = {-1, -1};
};

std::string numbered(int i) { return "line " + std::to_string(i); }

TEST(LogWriter, WritesLinesAboveAProgressBar) {
  Pipe pipe;
  LogMetrics metrics;
  const std::string erase(kEraseLine);
  {
    LogWriter writer(metrics, 100, pipe.ends[1]);
    show_status(erase + "bar 10 %");
    writer.push("a line\n");
    show_status(erase + "bar 100 %\n");
    writer.push("the next\n");
    show_status(erase + "bar");
    show_status(std::string(kEraseLine));
    writer.push("the last\n");
  }
  EXPECT_EQ(pipe.rest(), erase + "bar 10 %" + erase + "a line\n" + erase + "bar 10 %" + erase +
                             "bar 100 %\nthe next\n" + erase + "bar" + erase + "the last\n");
}

TEST(LogWriter, WritesEverythingInItsOrderBeforeItEnds) {
  Pipe pipe;
  LogMetrics metrics;
  std::string expected;
  {
    LogWriter writer(metrics, 1000, pipe.ends[1]);
    for (int i = 0; i < 1000; ++i) {
      writer.push(numbered(i) + '\n');
      expected += numbered(i) + '\n';
    }
  }
  EXPECT_EQ(pipe.rest(), expected);
  EXPECT_EQ(metrics.lines_dropped.value(), 0u);
}

TEST(LogWriter, AReaderThatStopsKeepsNoThreadWaiting) {
  Pipe pipe;
  LogMetrics metrics;
  LogWriter writer(metrics, 100, pipe.ends[1]);
  const std::string long_line(1 << 20, 'x');  // more than a pipe holds
  writer.push(long_line + '\n');
  for (int i = 1; i < 1000; ++i) writer.push(numbered(i) + '\n');
  EXPECT_EQ(metrics.lines_dropped.value(), 900u);
  EXPECT_EQ(pipe.line(), long_line);
  for (int i = 1; i < 100; ++i) EXPECT_EQ(pipe.line(), numbered(i));
  writer.push("again\n");
  const std::string missing = pipe.line();
  EXPECT_TRUE(missing.ends_with(" W log lines are missing lines=900")) << missing;
  EXPECT_EQ(pipe.line(), "again");
}

TEST(LogWriter, WritesLinesLongerThanAPipeHolds) {
  Pipe pipe;
  LogMetrics metrics;
  LogWriter writer(metrics, 10, pipe.ends[1]);
  const std::string line(1 << 20, 'x');
  writer.push(line + '\n');
  EXPECT_EQ(pipe.line(), line);
}

TEST(LogWriter, AReaderThatHasGoneIsNoReasonToDie) {
  Pipe pipe;
  LogMetrics metrics;
  {
    LogWriter writer(metrics, 10, pipe.ends[1]);
    pipe.close_reader();
    writer.push("unread\n");
    writer.flush(std::chrono::seconds(60));
    writer.push("reads\n");
  }
  EXPECT_EQ(metrics.lines_dropped.value(), 2u);
}

TEST(LogWriter, EndsWhereTheReaderTakesNothing) {
  Pipe pipe;
  LogMetrics metrics;
  { LogWriter(metrics, 1000, pipe.ends[1]).push(std::string(1 << 20, 'x')); }
  EXPECT_EQ(metrics.lines_dropped.value(), 1u);
}

// poll() calls it ready, as it does a terminal that nothing reads, but the write waits: an eventfd adds up what is
// written to it, and the second number would be too much.
TEST(LogWriter, SaysThatAThreadIsKeptByItsReader) {
  const int reader = ::eventfd(0, EFD_CLOEXEC);
  ASSERT_GE(reader, 0);
  {
    LogMetrics metrics;
    LogWriter writer(metrics, 10, reader);
    const std::string number(8, '\xfe');
    for (int i = 0; i < 2; ++i) writer.push(std::string(number));
    EXPECT_FALSE(writer.close());
    eventfd_t sum = 0;
    EXPECT_EQ(::eventfd_read(reader, &sum), 0);  // and the thread is free
  }
  ::close(reader);
}

TEST(LogWriter, SaysThatAllIsWritten) {
  Pipe pipe;
  LogMetrics metrics;
  LogWriter writer(metrics, 10, pipe.ends[1]);
  writer.push("a line\n");
  EXPECT_TRUE(writer.close());
  EXPECT_EQ(pipe.rest(), "a line\n");
}

TEST(LogWriter, TakesWhatIsLoggedWhileItLives) {
  Pipe pipe;
  LogMetrics metrics;
  std::optional<LogWriter> writer(std::in_place, metrics, 10, pipe.ends[1]);
  log_info("through it", {{"n", 1}});
  EXPECT_TRUE(pipe.line().ends_with(" I through it n=1"));
  writer.reset();
  testing::internal::CaptureStderr();
  log_info("without it");
  EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with(" I without it\n"));
}

void die_of(int signal) {
  LogMetrics metrics;
  LogWriter writer(metrics);
  for (int i = 0; i < 2000; ++i) log_info(numbered(i));
  log_error("the last words");
  ::raise(signal);
}

TEST(LogWriterDeathTest, TheLastLinesAreWrittenBeforeTheProcessDies) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::vector<int> signals = {SIGABRT};  // sanitizers take the others for themselves
#else
  const std::vector<int> signals = {SIGABRT, SIGSEGV, SIGBUS};
#endif
  for (const int signal : signals) {
    EXPECT_EXIT(die_of(signal), testing::KilledBySignal(signal), "E the last words") << signal;
  }
}

}  // namespace
}  // namespace chasqui
