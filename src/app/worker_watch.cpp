#include "app/worker_watch.h"

#include <algorithm>

#include "base/log.h"

namespace chasqui {
namespace {

// A process that was stopped, or whose machine slept, finds all clocks ahead: one look more tells that from a hang.
constexpr int kLooks = 2;
constexpr int kLooksInTime = 4;

const Error kHangs{ErrorCode::model_failure, "the worker of this request hangs; retry", ""};

}  // namespace

WorkerWatch::WorkerWatch(net::EventLoop& loop, Engine& engine, StreamHub& streams, const std::string& model)
    : loop_(loop),
      engine_(engine),
      streams_(streams),
      model_(model),
      every_(std::clamp<Duration>(engine.stuck_after() / kLooksInTime, milliseconds(20), seconds(1))),
      timer_(loop.executor()),
      workers_(engine.workers()) {
  look();
}

void WorkerWatch::lose(const Error& why) {
  lost_ = why;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].looks = kLooks;
    judge(i, true);
  }
}

bool WorkerWatch::hangs() const { return std::ranges::any_of(workers_, &Seen::hangs); }

void WorkerWatch::look() {
  const TimePoint now = loop_.now();
  const bool slept = now - last_look_ > kLooksInTime * every_;
  last_look_ = now;
  for (std::size_t i = 0; i < workers_.size(); ++i) judge(i, lost_ || (!slept && engine_.stuck(i, now)));
  timer_.expires_after(every_);
  timer_.async_wait([this, alive = std::weak_ptr<const bool>(alive_)](net::SystemError error) {
    if (!error && !alive.expired()) look();
  });
}

void WorkerWatch::judge(std::size_t worker, bool stands) {
  Seen& seen = workers_[worker];
  if (!stands) {
    if (seen.hangs) log_info("the worker moves again", {{"model", model_}, {"worker", worker}});
    seen = {};
    return;
  }
  if (++seen.looks < kLooks) return;
  const std::size_t given_up = streams_.give_up(engine_.requests_of(worker), lost_ ? *lost_ : kHangs);
  if (seen.hangs) return;
  seen.hangs = true;
  engine_.metrics(worker).stalls.add();
  log_error(
      lost_ ? lost_->message : "a worker hangs; its requests are given up",
      {{"model", model_}, {"worker", worker}, {"after_s", to_seconds(engine_.stuck_after())}, {"requests", given_up}});
  if (const auto callback = std::exchange(on_hang_, nullptr)) callback();
}

}  // namespace chasqui
