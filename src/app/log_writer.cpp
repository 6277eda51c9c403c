#include "app/log_writer.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <vector>

#include <poll.h>

#include "base/log.h"
#include "base/thread_name.h"

namespace chasqui {
namespace {

constexpr std::chrono::milliseconds kLookUp{100};  // at whether the process ends
// Where the reader has taken something, so much can be written without waiting for it: of pipes POSIX says so.
constexpr std::size_t kPiece = PIPE_BUF;
// Until the writing thread has seen that the process ends, and has given up.
constexpr std::chrono::milliseconds kWriterPatience = LogWriter::kPatience + 2 * kLookUp;

// … and dies of it: the handler is used once.
void write_last_lines(int signal) {
  flush_log();
  ::raise(signal);
}

}  // namespace

LogWriter::LogWriter(LogMetrics& metrics, std::size_t lines_max, int descriptor)
    : metrics_(metrics), lines_max_(lines_max), descriptor_(descriptor), mailbox_(lines_max) {
  // Signals are for other threads, and a closed pipe is no reason to die.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  set_log_sink(this);
  // A process with a handler, as sanitizers install one, has more to say.
  deadly_signals_.emplace(&write_last_lines, static_cast<int>(SA_RESETHAND | SA_ONSTACK),
                          DeadlySignals::Which::unhandled);
}

LogWriter::~LogWriter() {
  if (!closing_.load(std::memory_order_relaxed)) close();
  if (thread_.joinable()) thread_.join();
}

bool LogWriter::close() {
  deadly_signals_.reset();
  set_log_sink(nullptr);
  tell_missing();
  closing_.store(true, std::memory_order_relaxed);
  mailbox_.close();
  std::vector<bool> ended;
  if (!ended_.drain_within(ended, kWriterPatience)) return false;
  thread_.join();
  return true;
}

void LogWriter::push(std::string&& line) {
  // Not as soon as there is room for one: then every other line would be about missing ones.
  if (dropping_.load(std::memory_order_relaxed) && waiting_.load(std::memory_order_relaxed) <= lines_max_ / 2) {
    tell_missing();
  }
  if (!dropping_.load(std::memory_order_relaxed) && enqueue(std::move(line))) return;
  dropping_.store(true, std::memory_order_relaxed);
  missing_.fetch_add(1, std::memory_order_relaxed);
  metrics_.lines_dropped.add();
}

bool LogWriter::enqueue(std::string&& line) {
  if (waiting_.fetch_add(1, std::memory_order_relaxed) < lines_max_ && mailbox_.push(std::move(line))) return true;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

// Where they are missing: after those that waited before them.
void LogWriter::tell_missing() {
  if (!dropping_.exchange(false, std::memory_order_relaxed)) return;
  const std::uint64_t lines = missing_.exchange(0, std::memory_order_relaxed);
  if (log_enabled(LogLevel::warning)) {
    enqueue(whole_log_line(LogLevel::warning, "log lines are missing", {{"lines", lines}}));
  }
}

void LogWriter::flush(std::chrono::milliseconds most) const {
  for (auto left = most; left.count() > 0 && waiting_.load(std::memory_order_relaxed) > 0; --left) {
    ::poll(nullptr, 0, 1);  // what a signal handler may do
  }
}

void LogWriter::run() {
  name_this_thread("log");
  std::vector<std::string> lines;
  for (;;) {
    mailbox_.drain(lines, Wait::yes);
    if (lines.empty()) break;
    for (const std::string& line : lines) {
      if (!write_above_status(line)) metrics_.lines_dropped.add();
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  ended_.push(true);
}

// A line of the log takes the place of a progress bar, which is drawn again below it.
bool LogWriter::write_above_status(const std::string& line) {
  if (line.starts_with(kEraseLine)) {
    status_ = line.ends_with('\n') || line == kEraseLine ? std::string() : line;
    return write(line);
  }
  return status_.empty() ? write(line) : write(std::string(kEraseLine) + line + status_);
}

// How long it may still wait for the reader before it looks up.
std::chrono::milliseconds LogWriter::left() {
  if (!closing_.load(std::memory_order_relaxed)) return kLookUp;
  const TimePoint now = clock_.now();
  end_ = std::min(end_, now + kPatience);
  given_up_ = now >= end_;
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(end_ - now, Duration::zero()));
}

// False where the reader has gone, or takes too long while the process ends.
bool LogWriter::write(std::string_view line) {
  while (!line.empty() && !given_up_) {
    pollfd door{descriptor_, POLLOUT, 0};
    const int ready = ::poll(&door, 1, static_cast<int>(left().count()));
    if (ready <= 0) continue;
    const ssize_t n = ::write(descriptor_, line.data(), std::min(line.size(), kPiece));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;  // a closed standard error must not stop the server
    line.remove_prefix(static_cast<std::size_t>(n));
  }
  return line.empty();
}

}  // namespace chasqui
