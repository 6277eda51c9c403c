#include "app/session_sweep.h"

namespace chasqui {
namespace {

constexpr Duration kSweepEvery = seconds(1);

}  // namespace

void SessionSweep::sweep() {
  sessions_.expire(loop_.now());
  timer_.expires_after(kSweepEvery);
  timer_.async_wait([this](net::SystemError error) {
    if (!error) sweep();
  });
}

}  // namespace chasqui
