// How the server ends: it tells load balancers, takes nothing new, lets what runs finish for a while, and stops the
// loop. Owned by app/serve; loop thread only. app/exit_guard ends the process where this hangs.
#pragma once

#include <algorithm>
#include <utility>

#include "api/batch/batch_runner.h"
#include "api/core/model_table.h"
#include "api/core/served_model.h"
#include "api/delivery/kept_streams.h"
#include "api/observe/span_exporter.h"
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

// Four stages: the delay, if there is one; where another process keeps the listening sockets, a moment for connections
// that have not sent their request yet, since they cannot be given back; the drain; the end of the loop. The second
// signal closes what is left at once. The loop always goes on until the last handler has returned, so that no coroutine
// outlives the engine that it uses.
class Shutdown {
 public:
  Shutdown(net::EventLoop& loop, net::HttpServer& server, net::FrameServer& frames, KeptStreams& kept,
           const ModelTable& models, ShutdownTimes times, bool sockets_stay, SpanExporter* spans, BatchRunner* batches)
      : loop_(loop),
        server_(server),
        frames_(frames),
        kept_(kept),
        models_(models),
        times_(times),
        sockets_stay_(sockets_stay),
        timer_(loop.executor()),
        spans_(spans),
        batches_(batches),
        batches_drained_(batches == nullptr) {}

  // For each signal.
  void begin() {
    timer_.cancel();
    if (std::exchange(begun_, true)) return drain(loop_.now());
    end_ = loop_.now() + times_.delay + times_.drain;
    if (times_.delay == Duration::zero()) return leave();
    log_info("draining: connections are still accepted, and told to go elsewhere",
             {{"requests", in_flight()}, {"delay_s", to_seconds(times_.delay)}});
    refuse_work();
    server_.announce_end();
    timer_.expires_after(times_.delay);
    timer_.async_wait([this](net::SystemError error) {
      if (!error) leave();
    });
  }

 private:
  static constexpr Duration kAskTime = seconds(1);
  static constexpr Duration kLookEvery = milliseconds(10);

  void leave() {
    if (!sockets_stay_) return drain(end_);
    log_info("leaving: connections that are open may send a request", {{"connections", server_.connections()}});
    server_.stop_accepting();
    let_ask(std::min(loop_.now() + kAskTime, end_));
  }

  // Looks for the first time after a turn of the loop: a connection may be accepted and not counted yet.
  void let_ask(TimePoint until) {
    timer_.expires_after(kLookEvery);
    timer_.async_wait([this, until](net::SystemError error) {
      if (error) return;
      if (server_.connections() == 0 || loop_.now() >= until) return drain(end_);
      let_ask(until);
    });
  }

  void refuse_work() {
    if (batches_ != nullptr) batches_->hold();
    for (const ServedModel* const served : models_.all()) {
      served->admission.drain();
      served->engine.drain();
    }
  }

  std::size_t in_flight() const {
    std::size_t sum = 0;
    for (const ServedModel* const served : models_.all()) sum += served->engine.in_flight();
    return sum;
  }

  void drain(TimePoint deadline) {
    const Duration time = std::max(deadline - loop_.now(), Duration::zero());
    log_info("draining", {{"requests", in_flight()}, {"seconds", to_seconds(time)}});
    refuse_work();
    if (batches_ != nullptr) {
      batches_->drain(deadline, [this] {
        batches_drained_ = true;
        stop_when_drained();
      });
    }
    kept_.drain([this] {
      kept_drained_ = true;
      stop_when_drained();
    });
    frames_.drain(deadline, [this] {
      frames_drained_ = true;
      stop_when_drained();
    });
    server_.drain(deadline, [this] {
      server_drained_ = true;
      stop_when_drained();
    });
  }

  void stop_when_drained() {
    if (!server_drained_ || !frames_drained_ || !kept_drained_ || !batches_drained_ || ended_) return;
    ended_ = true;
    if (spans_ == nullptr) return loop_.stop();
    spans_->finish([&loop = loop_] { loop.stop(); });
  }

  net::EventLoop& loop_;
  net::HttpServer& server_;
  net::FrameServer& frames_;
  KeptStreams& kept_;
  const ModelTable& models_;
  const ShutdownTimes times_;
  const bool sockets_stay_;
  net::Timer timer_;
  SpanExporter* const spans_;   // null: spans are not collected
  BatchRunner* const batches_;  // null: there are none
  TimePoint end_ = kNever;      // of the drain
  bool begun_ = false;
  bool ended_ = false;
  bool server_drained_ = false;
  bool frames_drained_ = false;
  bool kept_drained_ = false;
  bool batches_drained_;
};

}  // namespace chasqui
