// How the server ends: it tells load balancers, takes nothing new, lets what runs finish for a while, and stops the
// loop. And how an operator takes it out of service and back, without an end. Owned by app/serve; loop thread only.
// app/exit_guard ends the process where this hangs.
#pragma once

#include <algorithm>
#include <utility>

#include "api/batch/batch_runner.h"
#include "api/core/drain_control.h"
#include "api/core/model_table.h"
#include "api/core/served_model.h"
#include "api/delivery/kept_streams.h"
#include "api/observe/span_exporter.h"
#include "api/session/session_move.h"
#include "app/link_service.h"
#include "base/log.h"
#include "engine/admission.h"
#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/frame_server.h"
#include "net/http_server.h"

namespace chasqui {

struct ShutdownTimes {
  Duration delay;  // with open listeners: /ready is 503, new work is refused with 503, every connection is closed after
  Duration drain;  // then for what runs
};

// What it ends; all of it outlives it.
struct ShutdownParts {
  net::HttpServer& server;
  net::HttpServer& admin;  // answers until all others have ended, so that operators see how far that is
  net::FrameServer& frames;
  KeptStreams& kept;
  const ModelTable& models;
  SpanExporter* spans;   // null: spans are not collected
  BatchRunner* batches;  // null: there are none
  LinkService* links;    // null: nothing is fetched for clients
};

// Four stages: the delay, if there is one; where another process keeps the listening sockets, a moment for connections
// that have not sent their request yet, since they cannot be given back; the drain; the end of the loop. The second
// signal closes what is left at once. The loop always goes on until the last handler has returned, so that no coroutine
// outlives the engine that it uses.
class Shutdown final : public DrainControl {
 public:
  Shutdown(net::EventLoop& loop, const ShutdownParts& parts, ShutdownTimes times, bool sockets_stay)
      : loop_(loop),
        parts_(parts),
        times_(times),
        sockets_stay_(sockets_stay),
        timer_(loop.executor()),
        batches_drained_(parts.batches == nullptr) {}

  // For each signal.
  void begin() {
    timer_.cancel();
    if (std::exchange(begun_, true)) return end_by(end_ = loop_.now());
    end_ = loop_.now() + times_.delay + times_.drain;
    if (times_.delay == Duration::zero()) return leave();
    log_info("draining: connections are still accepted, and told to go elsewhere",
             {{"requests", in_flight()}, {"delay_s", to_seconds(times_.delay)}});
    refuse_work();
    parts_.server.announce_end();
    timer_.expires_after(times_.delay);
    timer_.async_wait([this](net::SystemError error) {
      if (!error) leave();
    });
  }

  // Of the time that was given to all that ran.
  TimePoint end() const { return end_; }

  Service service() const override {
    if (begun_) return Service::leaving;
    return drained_ ? Service::drained : Service::open;
  }

  std::size_t in_flight() const override {
    std::size_t sum = 0;
    for (const ServedModel* const served : parts_.models.all_versions()) {
      // Of the first, those whose texts are read, and inputs to embed, are not in the engine.
      sum += std::max(served->admission.in_flight(), served->engine.in_flight());
    }
    return sum;
  }

  void drain() override {
    if (begun_ || std::exchange(drained_, true)) return;
    log_info("drained by an operator: new requests are refused", {{"requests", in_flight()}});
    for (ServedModel* const served : parts_.models.all_versions()) {
      served->admission.drain();
      move_all_answers(loop_, parts_.kept, *served);
    }
    if (parts_.batches != nullptr) parts_.batches->take_none(true);
    parts_.server.announce_end();
  }

  Result<void> reopen() override {
    if (begun_) return Error{ErrorCode::conflict, "the server is shutting down", ""};
    if (!std::exchange(drained_, false)) return {};
    log_info("in service again: new requests are taken");
    for (const ServedModel* const served : parts_.models.all_versions()) served->admission.resume();
    if (parts_.batches != nullptr) parts_.batches->take_none(false);
    parts_.server.retract_end();
    return {};
  }

 private:
  static constexpr Duration kAskTime = seconds(1);
  static constexpr Duration kLookEvery = milliseconds(10);
  static constexpr Duration kAdminTime = milliseconds(200);  // for answers that operators are reading

  void leave() {
    if (!sockets_stay_) return end_by(end_);
    log_info("leaving: connections that are open may send a request", {{"connections", parts_.server.connections()}});
    parts_.server.stop_accepting();
    let_ask(std::min(loop_.now() + kAskTime, end_));
  }

  // Looks for the first time after a turn of the loop: a connection may be accepted and not counted yet.
  void let_ask(TimePoint until) {
    timer_.expires_after(kLookEvery);
    timer_.async_wait([this, until](net::SystemError error) {
      if (error) return;
      if (parts_.server.connections() == 0 || loop_.now() >= until) return end_by(end_);
      let_ask(until);
    });
  }

  void refuse_work() {
    if (parts_.batches != nullptr) parts_.batches->hold();
    for (ServedModel* const served : parts_.models.all_versions()) {
      served->admission.drain();
      served->engine.drain();
      move_all_answers(loop_, parts_.kept, *served);
    }
  }

  void end_by(TimePoint deadline) {
    const Duration time = std::max(deadline - loop_.now(), Duration::zero());
    log_info("draining", {{"requests", in_flight()}, {"seconds", to_seconds(time)}});
    refuse_work();
    if (parts_.links != nullptr) parts_.links->stop();  // what is fetched is for requests that have not begun
    if (parts_.batches != nullptr) {
      parts_.batches->drain(deadline, [this] {
        batches_drained_ = true;
        stop_when_drained();
      });
    }
    parts_.kept.drain([this] {
      kept_drained_ = true;
      stop_when_drained();
    });
    parts_.frames.drain(deadline, [this] {
      frames_drained_ = true;
      stop_when_drained();
    });
    parts_.server.drain(deadline, [this] {
      server_drained_ = true;
      stop_when_drained();
    });
  }

  void stop_when_drained() {
    if (!server_drained_ || !frames_drained_ || !kept_drained_ || !batches_drained_ || ended_) return;
    ended_ = true;
    parts_.admin.drain(loop_.now() + kAdminTime, [this] { finish(); });
  }

  void finish() {
    if (parts_.spans == nullptr) return loop_.stop();
    parts_.spans->finish([&loop = loop_] { loop.stop(); });
  }

  net::EventLoop& loop_;
  const ShutdownParts parts_;
  const ShutdownTimes times_;
  const bool sockets_stay_;
  net::Timer timer_;
  TimePoint end_ = kNever;  // of the drain
  bool drained_ = false;
  bool begun_ = false;
  bool ended_ = false;
  bool server_drained_ = false;
  bool frames_drained_ = false;
  bool kept_drained_ = false;
  bool batches_drained_;
};

}  // namespace chasqui
