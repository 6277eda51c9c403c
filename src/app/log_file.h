// The file of --log-file, where the log goes instead of to standard error. Lines are added at its end, so that several
// processes may share it; open_again() follows a file that was moved away. Owned by serve(); open_again() on the loop.
#pragma once

#include <string>

#include "base/error.h"

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

}  // namespace chasqui
