// How the server ends: it takes nothing new, lets what runs finish for a while, and stops the loop. Owned by app/serve;
// loop thread only.
#pragma once

#include "api/kept_streams.h"
#include "api/span_exporter.h"
#include "base/log.h"
#include "engine/admission.h"
#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/frame_server.h"
#include "net/http_server.h"

namespace chasqui {

// Where whoever started us keeps the listening sockets, those who have connected may ask first: their connections
// cannot be given back. Then, or at once: stop admitting and let running requests end. Second signal: close what is
// left now. Either way the loop goes on until the last handler has returned, so that no coroutine outlives the engine
// that it uses.
class Shutdown {
 public:
  Shutdown(net::EventLoop& loop, net::HttpServer& server, net::FrameServer& frames, KeptStreams& kept,
           Admission& admission, Engine& engine, Duration drain_time, bool sockets_stay, SpanExporter* spans)
      : loop_(loop),
        server_(server),
        frames_(frames),
        kept_(kept),
        admission_(admission),
        engine_(engine),
        drain_time_(drain_time),
        sockets_stay_(sockets_stay),
        timer_(loop.executor()),
        spans_(spans) {}

  void begin() {
    if (leaving_) begun_ = true;  // the second signal
    if (!sockets_stay_ || leaving_) return drain();
    leaving_ = true;
    log_info("leaving: whoever has connected may ask", {{"connections", server_.connections()}});
    server_.stop_accepting();
    let_ask(loop_.now() + kAskTime);
  }

 private:
  static constexpr Duration kAskTime = seconds(1);
  static constexpr Duration kLookEvery = milliseconds(10);

  void let_ask(TimePoint end) {
    if (begun_) return;
    if (server_.connections() == 0 || loop_.now() >= end) return drain();
    timer_.expires_after(kLookEvery);
    timer_.async_wait([this, end](net::SystemError error) {
      if (!error) let_ask(end);
    });
  }

  void drain() {
    const Duration time = begun_ ? Duration::zero() : drain_time_;
    begun_ = true;
    log_info("draining", {{"requests", engine_.in_flight()}, {"seconds", to_seconds(time)}});
    admission_.drain();
    engine_.drain();
    const TimePoint deadline = loop_.now() + time;
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
    if (!server_drained_ || !frames_drained_ || !kept_drained_ || ended_) return;
    ended_ = true;
    if (spans_ == nullptr) return loop_.stop();
    spans_->finish([&loop = loop_] { loop.stop(); });
  }

  net::EventLoop& loop_;
  net::HttpServer& server_;
  net::FrameServer& frames_;
  KeptStreams& kept_;
  Admission& admission_;
  Engine& engine_;
  const Duration drain_time_;
  const bool sockets_stay_;
  net::Timer timer_;
  SpanExporter* const spans_;  // null: nobody collects them
  bool leaving_ = false;
  bool begun_ = false;
  bool ended_ = false;
  bool server_drained_ = false;
  bool frames_drained_ = false;
  bool kept_drained_ = false;
};

}  // namespace chasqui
