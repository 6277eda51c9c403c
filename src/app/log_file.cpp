#include "app/log_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "cli/terminal.h"

namespace chasqui {
namespace {

constexpr mode_t kMode = 0640;  // requests may be named in it

int open_to_add(const std::string& path, int more = 0) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | more, kMode);
}

// What is written waits for its reader, on the thread that is there for it.
bool lets_wait(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ::fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

}  // namespace

Result<LogFile> LogFile::open(const std::string& path) {
  if (path.empty()) return LogFile({}, STDERR_FILENO);
  const int descriptor = open_to_add(path);
  if (descriptor >= 0) return LogFile(path, descriptor);
  return invalid_field("--log-file", "--log-file " + path + ": " + std::strerror(errno));
}

LogFile::~LogFile() {
  if (descriptor_ != STDERR_FILENO && descriptor_ >= 0) ::close(descriptor_);
}

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

void LogFile::open_again() {
  if (path_.empty()) return;
  // A pipe that is there instead, and that is not read, would keep the loop.
  const int fresh = open_to_add(path_, O_NONBLOCK);
  // The number stays, so that the thread that writes needs to know nothing of it.
  const bool replaced = fresh >= 0 && lets_wait(fresh) && ::dup3(fresh, descriptor_, O_CLOEXEC) >= 0;
  const std::string reason = std::strerror(errno);
  if (fresh >= 0) ::close(fresh);
  if (replaced) {
    log_info("log file opened again");
  } else {
    log_error("the log file could not be opened again; the log goes on as before", {{"reason", reason}});
  }
}

void configure_log_for(int descriptor, LogLevel level, std::optional<LogFormat> format) {
  const LogFormat fitting = cli::is_terminal(descriptor) ? LogFormat::text : LogFormat::json;
  configure_log(level, format.value_or(fitting), cli::shows_colours(descriptor));
}

}  // namespace chasqui
