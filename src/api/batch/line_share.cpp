#include "api/batch/line_share.h"

#include <algorithm>

#include "base/log.h"

namespace chasqui {

void LineShare::hear(const QueueNews& news) {
  up_ = news.up;
  if (news.takes_again) end_refusal();
  if (!news.refusal.empty()) {
    hear_refusal(news.refusal);
  } else if (refused_ && !news.unsent.empty()) {
    tries_ = true;  // it never got there
  }
  if (up_ && !refused_) {
    timer_.cancel();
    state_ = State::shares;
  } else if (state_ == State::shares) {
    wait();
  }
}

void LineShare::wait() {
  state_ = State::waits;
  timer_.expires_after(pauses_.patience);
  timer_.async_wait([this](net::SystemError error) {
    if (error || state_ != State::waits) return;
    state_ = State::alone;
    tell();
    host_.alone();
  });
}

void LineShare::hear_refusal(const std::string& reason) {
  const bool begins = !std::exchange(refused_, true);
  if (begins && loop_.now() - taken_at_ > pauses_.most) pause_ = Duration::zero();
  reason_ = reason;
  tries_ = false;
  Duration pause = pauses_.soon;
  if (state_ == State::alone) {
    tell();
    pause = pause_ = std::min(std::max(2 * pause_, pauses_.least), pauses_.most);
  }
  try_.expires_after(pause);
  try_.async_wait([this](net::SystemError error) {
    if (error || !refused_) return;
    tries_ = true;
    host_.changed();
  });
}

void LineShare::end_refusal() {
  refused_ = tries_ = false;
  taken_at_ = loop_.now();
  try_.cancel();
  if (std::exchange(told_, false)) log_info("the batch queue takes lines again");
}

// One line of the log, while the broker answers: else that is what the log says.
void LineShare::tell() {
  if (!refused_ || !up_ || std::exchange(told_, true)) return;
  log_warning("the batch queue takes no lines; this node runs its batches itself, and tries again later",
              {{"reason", reason_}});
}

}  // namespace chasqui
