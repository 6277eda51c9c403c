// Where log lines go instead of standard error: to a sink that takes them without keeping the caller waiting
// (app/log_writer). Any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace chasqui {

class LogSink {
 public:
  virtual ~LogSink() = default;
  // A whole line. Never waits for the reader of the log.
  virtual void push(std::string&& line) = 0;
  // Waits until all of them are written, for so long at most. Also in a signal handler.
  virtual void flush(std::chrono::milliseconds most) const = 0;
};

// All lines from now on; null: to standard error again, by the thread that logs.
// REQUIRES: no thread logs meanwhile to the one before.
void set_log_sink(LogSink* sink);
// Shows `text`, which begins with kEraseLine, as the last line of a terminal: lines of the log come above it, until a
// text that ends with a newline, or holds nothing more, takes its place. At start, for progress.
inline constexpr std::string_view kEraseLine = "\r\033[K";
void show_status(std::string&& text);
// For those who are about to end the process, or to write to standard error themselves. Also in a signal handler.
void flush_log(std::chrono::milliseconds most = std::chrono::milliseconds(1000));

}  // namespace chasqui
