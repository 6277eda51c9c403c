// Ends the process in bounded time after SIGTERM or SIGINT, whatever hangs: the loop, a worker inside libllama, a
// thread of the offload pool. Owned by app/serve, which destroys it after the server and before the log. It has a
// thread of its own that waits for signals and for a deadline, takes no lock of others, and is the only one to end the
// process by force.
//
// The first signal begins the shutdown and sets the deadline: `patience`, which is what running requests may take, and
// kGrace. The second one leaves kHurry. Where a service manager sends one signal to all processes of a service, the
// child of a supervisor gets it twice, the second time from its parent: that counts once. Once the server has answered
// everything, what is left are joins of threads and freed memory: they get kGrace at most, and before it the time that
// is given for what is still written. At the deadline the guard logs what still computes and calls _exit(): with 0
// where only those were left, else with kForcedExit.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"

namespace chasqui {

class ExitGuard {
 public:
  static constexpr Duration kGrace = milliseconds(900);
  static constexpr Duration kHurry = milliseconds(500);
  static constexpr milliseconds kLastWords{100};  // of each of the two, for the log to be written
  static constexpr int kForcedExit = 70;          // EX_SOFTWARE

  ExitGuard();
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

  // Whether the parent of this process passes its own signals on.
  enum class Parent { any, supervisor };

  // From now on the guard has both signals. `on_signal` runs on its thread for each that counts, until tear_down(); it
  // must not block. Once.
  void watch(Duration patience, std::function<void()> on_signal, Parent parent = Parent::any);
  // The shutdown begins without a signal. Any thread.
  void begin();
  // All requests have their answers, and the state that was promised is saved; `keeping` is for what else is kept.
  // `on_signal` is not called any more when this returns.
  void tear_down(Duration keeping = Duration::zero());

 private:
  void run();
  void on_message(char what);
  void on_signal();
  [[noreturn]] void end_process() const;
  void tell(char what) const;

  const RealClock clock_;
  Duration patience_{};
  std::function<void()> on_signal_;
  int read_fd_ = -1;
  int write_fd_ = -1;
  std::thread thread_;
  std::atomic<bool> disconnected_{false};
  Duration keeping_{};  // written before the guard's thread is told
  // The guard's thread only.
  TimePoint deadline_ = kNever;
  int signals_ = 0;      // that count
  int passed_on_ = 0;    // by a supervisor
  int from_others_ = 0;  // all but these
  bool tearing_down_ = false;
  bool ended_ = false;
};

// Names of this process's threads that compute or wait for a disk, but for the caller; empty where the system does not
// tell.
std::string busy_threads();

}  // namespace chasqui
