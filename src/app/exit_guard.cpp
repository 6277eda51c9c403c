#include "app/exit_guard.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/log_sink.h"
#include "base/thread_name.h"

namespace chasqui {
namespace {

// What the pipe carries.
constexpr char kSignal = 's';
constexpr char kPassedOn = 'p';  // a signal of the supervisor
constexpr char kBegin = 'b';
constexpr char kTearDown = 't';
constexpr char kEnd = 'e';

volatile int g_signal_pipe = -1;  // signal handlers have no other way to know it
volatile bool g_is_supervised = false;

void on_ending_signal(int, siginfo_t* info, void*) {
  const int before = errno;
  const char what = g_is_supervised && info->si_pid == ::getppid() ? kPassedOn : kSignal;
  // A full pipe holds signals enough.
  [[maybe_unused]] const ssize_t written = ::write(g_signal_pipe, &what, 1);
  errno = before;
}

void set_action(struct sigaction action) {
  action.sa_flags |= SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGTERM, SIGINT}) CHECK(::sigaction(number, &action, nullptr) == 0);
}

// The state of a thread, the word behind its name in /proc/PID/task/TID/stat.
char state_in(const std::string& stat) {
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() ? stat[name_end + 2] : '?';
}

}  // namespace

std::string busy_threads() {
  std::string out;
#ifdef __linux__
  namespace fs = std::filesystem;
  const std::string self = std::to_string(::gettid());
  std::error_code error;
  for (fs::directory_iterator task("/proc/self/task", error), end; !error && task != end; task.increment(error)) {
    if (task->path().filename() == self) continue;
    std::ifstream file(task->path() / "stat");
    const std::string stat(std::istreambuf_iterator<char>(file), {});
    const char state = state_in(stat);
    if (state != 'R' && state != 'D') continue;
    const std::size_t begin = stat.find('(') + 1;
    out += (out.empty() ? "" : ", ") + stat.substr(begin, stat.rfind(')') - begin);
  }
#endif
  return out;
}

ExitGuard::ExitGuard() {
  int ends[2] = {-1, -1};
  CHECK(::pipe(ends) == 0, "a pipe for signals");
  read_fd_ = ends[0];
  write_fd_ = ends[1];
  for (const int fd : ends) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

ExitGuard::~ExitGuard() {
  if (thread_.joinable()) {
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    set_action(by_default);
    tell(kEnd);
    thread_.join();
  }
  ::close(read_fd_);
  ::close(write_fd_);
}

void ExitGuard::watch(Duration patience, std::function<void()> on_signal, Parent parent) {
  CHECK(!thread_.joinable());
  patience_ = patience;
  on_signal_ = std::move(on_signal);
  thread_ = std::thread([this] { run(); });
  g_signal_pipe = write_fd_;
  g_is_supervised = parent == Parent::supervisor;
  struct sigaction action {};
  action.sa_sigaction = &on_ending_signal;
  action.sa_flags = SA_SIGINFO;
  set_action(action);
}

void ExitGuard::begin() { tell(kBegin); }

void ExitGuard::tear_down(Duration keeping) {
  if (!thread_.joinable()) return;
  keeping_ = keeping;
  tell(kTearDown);
  disconnected_.wait(false);
}

void ExitGuard::tell(char what) const {
  while (::write(write_fd_, &what, 1) < 0 && (errno == EINTR || errno == EAGAIN)) ::poll(nullptr, 0, 1);
}

void ExitGuard::run() {
  name_this_thread("exit-guard");
  while (!ended_) {
    int wait = -1;
    if (deadline_ != kNever) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock_.now());
      wait = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    pollfd door{read_fd_, POLLIN, 0};
    const int ready = ::poll(&door, 1, wait);
    char what = 0;
    if (ready > 0 && ::read(read_fd_, &what, 1) == 1) on_message(what);
    if (!ended_ && clock_.now() >= deadline_) end_process();
  }
}

void ExitGuard::on_message(char what) {
  const TimePoint now = clock_.now();
  switch (what) {
    case kSignal:
      ++from_others_;
      on_signal();
      break;
    case kPassedOn:
      ++passed_on_;
      on_signal();
      break;
    case kBegin: deadline_ = std::min(deadline_, now + patience_ + kGrace - kLastWords); break;
    case kTearDown:
      tearing_down_ = true;
      deadline_ = std::min(deadline_, now + keeping_ + kGrace - kLastWords);
      on_signal_ = nullptr;
      disconnected_.store(true);
      disconnected_.notify_all();
      break;
    default: ended_ = true; break;
  }
}

// One by each of two ways is the same signal; two by one way are two.
void ExitGuard::on_signal() {
  const int sent = std::max(passed_on_, from_others_);
  if (sent == signals_) return;
  signals_ = sent;
  deadline_ = std::min(deadline_, clock_.now() + (signals_ == 1 ? patience_ + kGrace : kHurry) - kLastWords);
  if (on_signal_) on_signal_();
}

void ExitGuard::end_process() const {
  const std::string busy = busy_threads();
  log_error(tearing_down_ ? "all requests are done, but parts of the server do not end; the process ends without them"
                          : "the shutdown hangs; the process ends by force",
            {{"computing", busy.empty() ? "no thread" : busy}});
  flush_log(kLastWords);
  ::_exit(tearing_down_ ? 0 : kForcedExit);
}

}  // namespace chasqui
