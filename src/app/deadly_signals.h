// A handler for the signals that a process dies of when something in it is broken. In place as long as this object
// lives, then those before it again. The signals are those of the process: the newest handler is removed first.
#pragma once

#include <array>
#include <csignal>

namespace chasqui {

class DeadlySignals {
 public:
  // For what of them the handler is: all, or only those without a handler.
  enum class Which { all, unhandled };

  // handler: only what a signal handler may do. flags: of sigaction(2).
  DeadlySignals(void (*handler)(int), int flags, Which which);
  ~DeadlySignals();
  DeadlySignals(const DeadlySignals&) = delete;
  DeadlySignals& operator=(const DeadlySignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace chasqui
