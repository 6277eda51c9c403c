#include "app/supervise.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "app/exit_guard.h"
#include "app/listeners.h"
#include "app/log_file.h"
#include "app/log_writer.h"
#include "app/rpc_peers.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_sink.h"

namespace chasqui {
namespace {

constexpr const char* kMark = "CHASQUI_SUPERVISED";
constexpr int kFirstHandedOver = 3;
constexpr int kKeptAbove = 64;  // where sockets do not stand in each other's way

constexpr Duration kPauseMin = milliseconds(100);
constexpr Duration kPauseMax = seconds(30);
constexpr Duration kPeerPauseMax = seconds(2);  // for a machine that is waited for, which costs little to ask
// A server ends itself in time (app/exit_guard); one that is stopped or cannot is killed.
constexpr Duration kLongerThanItself = seconds(1);
constexpr Duration kWell = seconds(60);  // a child that lives so long begins with a short pause again

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
  return std::string("signal ") + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
}

bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// A signal that is blocked is heard even where it is ignored: under nohup the end of a login would end the server.
sigset_t heard_signals(bool hears_hangup) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&set, number);
  if (hears_hangup || !is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

// A socket of the supervisor's, and the name by which the server knows its kind.
struct HeldSocket {
  int descriptor = -1;
  std::string name;
  std::string unlink_path;
};

class Supervisor {
 public:
  Supervisor(const ServeConfig& config, LogFile& log_file, char** argv)
      : argv_(argv),
        log_file_(log_file),
        patience_(config.operation.drain_delay + config.drain_time + kLongerThanItself),
        hears_hangup_(config.reads_files_again()),
        signals_(heard_signals(hears_hangup_)) {}

  Result<void> open(const Listeners& listeners);
  int run();
  ~Supervisor();

 private:
  Result<void> hold(const std::vector<net::ListenAddress>& addresses, const std::string& name);
  bool start();
  [[noreturn]] void become_server();
  int wait_for_signal();
  // The status of the server, if it is among those.
  std::optional<int> reap() const;
  // The exit code, when there is to be no other server.
  std::optional<int> child_ended();
  std::optional<int> told(int signal_number);

  TimePoint next_deadline() const { return std::min(start_at_, kill_at_); }
  void kill_child();

  char** const argv_;
  LogFile& log_file_;
  const Duration patience_;  // with a server that was told to stop
  const bool hears_hangup_;  // it reads its keys again, or follows its log
  const sigset_t signals_;
  sigset_t before_{};
  const RealClock clock_;
  std::vector<HeldSocket> sockets_;
  pid_t child_ = 0;  // 0: there is none
  TimePoint started_{};
  TimePoint start_at_ = kNever;
  TimePoint kill_at_ = kNever;
  Duration pause_ = kPauseMin;
  std::int64_t starts_ = 0;
  bool stopping_ = false;
};

Result<void> Supervisor::hold(const std::vector<net::ListenAddress>& addresses, const std::string& name) {
  for (const net::ListenAddress& address : addresses) {
    const auto opened = net::open_listening(address);
    if (!opened) return opened.error();
    const int kept = ::fcntl(*opened, F_DUPFD_CLOEXEC, kKeptAbove);
    if (kept < 0) return Error{ErrorCode::unavailable, "the sockets cannot be kept: too many open files", ""};
    ::close(*opened);
    sockets_.push_back({kept, name, address.descriptor < 0 ? address.path : ""});
  }
  return {};
}

Result<void> Supervisor::open(const Listeners& listeners) {
  if (auto held = hold(listeners.http, "http"); !held) return held;
  return hold(listeners.frames, "frames");
}

Supervisor::~Supervisor() {
  for (const HeldSocket& socket : sockets_) {
    ::close(socket.descriptor);
    if (!socket.unlink_path.empty()) ::unlink(socket.unlink_path.c_str());
  }
}

// In the child, which has no thread but this one.
void Supervisor::become_server() {
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  ::setpgid(0, 0);  // Ctrl-C is for the supervisor alone, which passes it on: twice would mean at once
  std::string names;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    ::dup2(sockets_[i].descriptor, kFirstHandedOver + static_cast<int>(i));
    names += (i == 0 ? "" : ":") + sockets_[i].name;
  }
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", std::to_string(sockets_.size()).c_str(), 1);
  ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
  ::setenv(kMark, "1", 1);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::execvp(argv_[0], argv_);  // by name, so that a new binary in its place is taken next time
  std::perror("chasqui: the server cannot be started");
  ::_exit(2);
}

bool Supervisor::start() {
  start_at_ = kNever;
  started_ = clock_.now();
  const pid_t child = ::fork();
  if (child == 0) become_server();
  if (child < 0) {
    log_error("the server cannot be started: no process to be had", {{"again_in_s", to_seconds(pause_)}});
    start_at_ = started_ + pause_;
    return false;
  }
  child_ = child;
  ++starts_;
  log_info("the server is started", {{"pid", static_cast<std::int64_t>(child)}, {"start", starts_}});
  return true;
}

int Supervisor::wait_for_signal() {
  if (next_deadline() == kNever) return ::sigwaitinfo(&signals_, nullptr);
  const auto left = std::max(next_deadline() - clock_.now(), Duration::zero());
  timespec time{};
  time.tv_sec = static_cast<time_t>(std::chrono::duration_cast<seconds>(left).count());
  time.tv_nsec = static_cast<long>((left % seconds(1)).count());
  return ::sigtimedwait(&signals_, nullptr, &time);
}

// All that have ended: the first process of a container gets those whose parents have gone, and one that was started in
// place of a shell gets the shell's.
std::optional<int> Supervisor::reap() const {
  std::optional<int> of_server;
  int status = 0;
  for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == child_) of_server = status;
  }
  return of_server;
}

std::optional<int> Supervisor::child_ended() {
  const auto ended = reap();
  if (!ended) return std::nullopt;
  const int status = *ended;
  child_ = 0;
  kill_at_ = kNever;
  const Duration lived = clock_.now() - started_;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (stopping_) return code;
  // A mistake in the settings, or a server that has never stood: nothing gets better by trying again.
  if (WIFEXITED(status) && (code == 2 || (code == 1 && starts_ == 1))) return code;
  if (lived >= kWell) pause_ = kPauseMin;
  const bool waits = code == kPeerLostExit;
  pause_ = std::min(pause_, waits ? kPeerPauseMax : kPauseMax);
  const char* const what = waits ? "an RPC server is not there" : "the server has died";
  log_error(std::string(what) + "; it is started again",
            {{"by", how_it_ended(status)}, {"after_s", to_seconds(lived)}, {"in_s", to_seconds(pause_)}});
  start_at_ = clock_.now() + pause_;
  pause_ = 2 * pause_;
  return std::nullopt;
}

std::optional<int> Supervisor::told(int signal_number) {
  // Also during a drain: who turns the log does not know of it, and a second SIGTERM would cut what runs.
  const bool stops = signal_number != SIGHUP || !hears_hangup_;
  stopping_ = stopping_ || stops;
  if (signal_number == SIGHUP) log_file_.open_again();
  if (child_ == 0) return stopping_ ? std::optional<int>(0) : std::nullopt;
  ::kill(child_, stops && signal_number == SIGHUP ? SIGTERM : signal_number);
  if (stops) {
    const Duration left = kill_at_ == kNever ? patience_ : kLongerThanItself;
    kill_at_ = std::min(kill_at_, clock_.now() + left);
  }
  return std::nullopt;
}

void Supervisor::kill_child() {
  kill_at_ = kNever;
  log_error("the server does not end; it is killed", {{"pid", static_cast<std::int64_t>(child_)}});
  ::kill(child_, SIGKILL);
}

int Supervisor::run() {
  ::sigprocmask(SIG_BLOCK, &signals_, &before_);
  start();
  for (;;) {
    const int heard = wait_for_signal();
    std::optional<int> code;
    if (heard == SIGCHLD) {
      code = child_ended();
    } else if (heard > 0) {
      code = told(heard);
    } else if (clock_.now() >= kill_at_) {
      kill_child();
    } else if (clock_.now() >= start_at_) {
      start();
    }
    if (code) return *code;
  }
}

}  // namespace

bool is_supervised() { return std::getenv(kMark) != nullptr; }

void end_hung_process() {
  log_error("the process ends because a worker hangs", {});
  flush_log();
  std::fflush(nullptr);
  ::_exit(ExitGuard::kForcedExit);
}

int supervise(const ServeConfig& config, char** argv) {
  auto log_file = LogFile::open(config.log_file);
  if (!log_file) {
    std::fprintf(stderr, "chasqui: %s\n", log_file.error().message.c_str());
    return 2;
  }
  configure_log_for(log_file->descriptor(), config.log_level, config.log_format);
  std::optional<Supervisor> supervisor(std::in_place, config, *log_file, argv);
  auto listeners = listeners_of(config);
  Result<void> opened = listeners ? supervisor->open(*listeners) : Result<void>(listeners.error());
  if (!opened) {
    std::fprintf(stderr, "chasqui: %s\n", opened.error().message.c_str());
    return 2;
  }
  LogMetrics metrics;
  // A log without a reader would keep it from starting the next server.
  LogWriter log(metrics, kCountLimit<"log_lines">, log_file->descriptor());
  const int code = supervisor->run();
  supervisor.reset();  // and the files of its sockets, whatever becomes of the log
  if (!log.close()) ::_exit(code);
  return code;
}

}  // namespace chasqui
