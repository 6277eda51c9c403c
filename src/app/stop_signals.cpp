#include "app/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace chasqui {

StopSignals::StopSignals() {
  sigset_t all{};
  ::sigemptyset(&all);
  ::sigaddset(&all, SIGINT);
  ::sigaddset(&all, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  fd_ = FileDescriptor(::signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC));
}

StopSignals::~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int StopSignals::take() {
  signalfd_siginfo came{};
  const ssize_t got = ::read(fd_.get(), &came, sizeof came);
  return got == sizeof came ? static_cast<int>(came.ssi_signo) : 0;
}

}  // namespace chasqui
