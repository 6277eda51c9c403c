// The file of --log-file, where the log goes instead of to standard error. Lines are added at its end, so that several
// processes may share it; open_again() follows a file that was moved away. Owned by serve(); open_again() on the loop.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace chasqui {

class LogFile {
 public:
  // Errors name --log-file. An empty path stands for standard error.
  static Result<LogFile> open(const std::string& path);
  ~LogFile();
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&&) = delete;

  int descriptor() const { return descriptor_; }
  // Where that fails the log goes on as before, and says so.
  void open_again();

 private:
  LogFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

// configure_log() for a log that goes to `descriptor`. Where no format was asked for: text on a terminal, which a
// person reads, and JSON elsewhere. On a terminal text has colours, unless NO_COLOR or TERM=dumb is against it.
void configure_log_for(int descriptor, LogLevel level, std::optional<LogFormat> format);

}  // namespace chasqui
