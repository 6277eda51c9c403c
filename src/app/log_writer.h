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
#include "base/clock.h"
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
  // Who has not read all of it so long after the process was about to end misses the rest.
  static constexpr std::chrono::milliseconds kPatience{700};

  explicit LogWriter(LogMetrics& metrics, std::size_t lines_max = kCountLimit<"log_lines">,
                     int descriptor = STDERR_FILENO);
  // Without close() before it waits for what writes, however long that takes.
  ~LogWriter() override;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Takes no more and waits, for less than a second, until what there is has been written. False: the reader keeps the
  // writing thread inside write(), as terminals and disks can, and this object has to stay: end the process by _exit().
  bool close();

  // Any thread.
  void push(std::string&& line) override;
  void flush(std::chrono::milliseconds most) const override;

 private:
  void run();
  bool enqueue(std::string&& line);
  void tell_missing();
  bool write(std::string_view line);
  bool write_above_status(const std::string& line);
  std::chrono::milliseconds left();

  LogMetrics& metrics_;
  const std::size_t lines_max_;
  const int descriptor_;
  Mailbox<std::string> mailbox_;
  std::atomic<std::size_t> waiting_{0};  // in the mailbox, or taken out of it and not written yet
  std::atomic<bool> closing_{false};
  std::atomic<bool> dropping_{false};      // until half of what may wait is written
  std::atomic<std::uint64_t> missing_{0};  // lines that were dropped since that was reported
  bool given_up_ = false;                  // the writing thread's
  TimePoint end_ = kNever;                 // the writing thread's: of kPatience
  const RealClock clock_;
  Mailbox<bool> ended_{1};  // something when the writing thread is about to end
  std::string status_;      // the writing thread's: the last line of the terminal, while there is one
  std::thread thread_;
  std::optional<DeadlySignals> deadly_signals_;  // last lines are written first: from set_log_sink() on
};

}  // namespace chasqui
