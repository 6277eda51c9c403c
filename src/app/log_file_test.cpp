#include "app/log_file.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chasqui {
namespace {

namespace fs = std::filesystem;

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() {
    std::string name = testing::TempDir() + "chasqui-log-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ / "log";
    moved_ = folder_ / "log.1";
  }
  ~LogFileTest() override { fs::remove_all(folder_); }

  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  fs::path path_;
  fs::path moved_;
};

void write_to(const LogFile& file, std::string_view line) {
  EXPECT_EQ(::write(file.descriptor(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
}

TEST_F(LogFileTest, FollowsAFileThatWasMovedAway) {
  auto file = LogFile::open(path_);
  ASSERT_TRUE(file);
  write_to(*file, "before\n");
  fs::rename(path_, moved_);
  file->open_again();
  write_to(*file, "after\n");
  EXPECT_EQ(text_of(moved_), "before\n");
  EXPECT_EQ(text_of(path_), "after\n");
}

TEST_F(LogFileTest, APipeWithoutAReaderIsNotWaitedFor) {
  auto file = LogFile::open(path_);
  ASSERT_TRUE(file);
  fs::rename(path_, moved_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  file->open_again();
  write_to(*file, "goes on\n");
  EXPECT_EQ(text_of(moved_), "goes on\n");
}

TEST_F(LogFileTest, APipeWithAReaderGetsLinesAndMayKeepThemWaiting) {
  auto file = LogFile::open(path_);
  ASSERT_TRUE(file);
  fs::rename(path_, moved_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  file->open_again();
  write_to(*file, "here\n");
  std::array<char, 16> read{};
  EXPECT_EQ(::read(reader, read.data(), read.size()), 5);
  EXPECT_EQ(::fcntl(file->descriptor(), F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
  ::close(reader);
}

// What is written is not looked at: how a line would be written is.
class LogForm : public testing::Test {
 protected:
  ~LogForm() override {
    if (terminal_ >= 0) ::close(terminal_);
    configure_log(LogLevel::info, LogFormat::text);
  }

  static std::string error_line() { return whole_log_line(LogLevel::error, "bad", {}); }
  static bool is_coloured() { return error_line().find('\x1b') != std::string::npos; }

  const int terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
};

TEST_F(LogForm, IsJsonWhereThereIsNoTerminal) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  configure_log_for(pipe[1], LogLevel::info, std::nullopt);
  EXPECT_EQ(log_format(), LogFormat::json);
  configure_log_for(pipe[1], LogLevel::info, LogFormat::text);
  EXPECT_EQ(log_format(), LogFormat::text);
  EXPECT_FALSE(is_coloured());
  configure_log_for(-1, LogLevel::info, std::nullopt);
  EXPECT_EQ(log_format(), LogFormat::json) << "standard error may be closed";
  for (const int end : pipe) ::close(end);
}

TEST_F(LogForm, IsTextInColoursOnATerminal) {
  if (terminal_ < 0 || ::isatty(terminal_) != 1) GTEST_SKIP() << "there are no terminals here";
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  configure_log_for(terminal_, LogLevel::info, std::nullopt);
  EXPECT_EQ(log_format(), LogFormat::text);
  EXPECT_TRUE(is_coloured());
  ::setenv("TERM", "dumb", 1);
  configure_log_for(terminal_, LogLevel::info, std::nullopt);
  EXPECT_EQ(log_format(), LogFormat::text);
  EXPECT_FALSE(is_coloured());
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
  configure_log_for(terminal_, LogLevel::info, std::nullopt);
  EXPECT_FALSE(is_coloured());
  ::unsetenv("NO_COLOR");
  configure_log_for(terminal_, LogLevel::info, LogFormat::json);
  EXPECT_EQ(log_format(), LogFormat::json);
  EXPECT_FALSE(is_coloured());
}

}  // namespace
}  // namespace chasqui
