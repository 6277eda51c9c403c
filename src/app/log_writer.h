// Writes log lines on a thread of its own, so that a thread that logs never waits for the reader of standard error: a
// pipe that is full, a terminal that was stopped, a slow disk. Up to a limit lines wait; then the newest are left out,
// counted, and told of in their place once it is read again. A process that dies of a signal gets time to write its
// last lines first, and none dies because its log is closed. Owned by serve(), from before other threads start to after
// they have ended, and by supervise(); one at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <unistd.h>

#include "app/deadly_signals.h"
#include "base/limits.h"
#include "base/log_sink.h"
#include "base/mailbox.h"
#include "base/metric_set.h"

namespace chasqui {

struct LogMetrics : MetricSet {
  Counter lines_dropped{*this,
                        {"chasqui_log_lines_dropped_total", "Log lines left out because standard error took none."}};
};

class LogWriter final : public LogSink {
 public:
  // Who reads nothing for so long when the process ends misses the rest.
  static constexpr std::chrono::milliseconds kPatience{1000};

  explicit LogWriter(LogMetrics& metrics, std::size_t lines_max = kCountLimit<"log_lines">,
                     int descriptor = STDERR_FILENO);
  ~LogWriter() override;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Any thread.
  void push(std::string&& line) override;
  void flush() const override;

 private:
  void run();
  bool enqueue(std::string&& line);
  void tell_missing();
  bool write(std::string_view line);
  bool write_above_status(const std::string& line);

  LogMetrics& metrics_;
  const std::size_t lines_max_;
  const int descriptor_;
  Mailbox<std::string> mailbox_;
  std::atomic<std::size_t> waiting_{0};  // in the mailbox, or taken out of it and not written yet
  std::atomic<bool> closing_{false};
  std::atomic<bool> dropping_{false};      // until half of what may wait is written
  std::atomic<std::uint64_t> missing_{0};  // lines that were dropped since that was reported
  bool given_up_ = false;                  // the writing thread's
  std::string status_;                     // the writing thread's: the last line of the terminal, while there is one
  std::thread thread_;
  std::optional<DeadlySignals> deadly_signals_;  // last lines are written first: from set_log_sink() on
};

}  // namespace chasqui
