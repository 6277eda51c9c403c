#include "app/deadly_signals.h"

#include <cstddef>

namespace chasqui {

DeadlySignals::DeadlySignals(void (*handler)(int), int flags, Which which) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (which == Which::all || before_[i].sa_handler == SIG_DFL) ::sigaction(kSignals[i], &action, nullptr);
  }
}

DeadlySignals::~DeadlySignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace chasqui
