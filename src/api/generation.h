// The loop's end of a running request. StreamHub takes what the engine has produced, once per wake-up, and hands each
// event to the Generation it belongs to; a Generation is awaited by one handler and cancels its request when it is
// destroyed before the end. Loop thread only.
//
// bounded: a handler whose client does not read stops taking events; past `unread_max` bytes the request is cancelled,
// its text is dropped, and the handler sees slow() (worker-never-waits).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/request.h"
#include "engine/admission.h"
#include "engine/engine.h"
#include "net/event_signal.h"

namespace chasqui {

class Generation;

class StreamHub {
 public:
  StreamHub(Engine& engine, net::EventLoop& loop, std::size_t unread_max)
      : engine_(engine), loop_(loop), unread_max_(unread_max) {}

  // Called for every wake-up of the engine.
  void deliver();
  // Sees each finished event first, also those whose handler has gone. Set before the loop runs.
  void on_finished(std::function<void(const Event&)> watcher) { watcher_ = std::move(watcher); }
  // For a client that asks for it and waits for the end all the same: its finished event says so.
  void cancel(RequestId request);
  // Ends requests with an error, of a worker that does not answer; none: all. What it says of them later is dropped.
  // Returns how many that were.
  std::size_t give_up(const std::optional<std::vector<RequestId>>& requests, const Error& error);
  // Null when nobody reads its answer.
  RequestPtr request_of(RequestId id) const;
  // All that run or wait and whose answer somebody reads, in no order.
  std::vector<RequestPtr> requests() const;

 private:
  friend class Generation;

  void finish(Event event);

  Engine& engine_;
  net::EventLoop& loop_;
  const std::size_t unread_max_;
  std::function<void(const Event&)> watcher_;
  std::unordered_map<RequestId, Generation*> open_;
  std::unordered_set<RequestId> given_up_;  // their worker has not ended them yet
  std::vector<Event> events_;
};

class Generation {
 public:
  // Submits the request. Errors are the engine's: overloaded, unavailable. The permit goes with the finished event,
  // when the slot is free again, however slowly the client reads the rest.
  static Result<std::unique_ptr<Generation>> start(StreamHub& hub, RequestPtr request, Permit permit);
  // The same for several that one client waits for. Event::choice is the place in the list; an error means that none
  // of them runs.
  static Result<std::unique_ptr<Generation>> start(StreamHub& hub, std::vector<RequestPtr> requests, Permit permit);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // True when there is something to take() or interrupt() was called; false when `deadline` came first.
  net::Awaitable<bool> wait_until(TimePoint deadline);
  // Replaces the content of `events` by what has come since the last call.
  void take(std::vector<Event>& events);
  // Makes a wait return, for a client that has gone.
  void interrupt() { signal_.notify(); }

  bool slow() const { return slow_; }

 private:
  friend class StreamHub;
  Generation(StreamHub& hub, Permit permit) : hub_(hub), permit_(std::move(permit)), signal_(hub.loop_) {}

  void cancel_all();
  std::ptrdiff_t place_of(RequestId id) const;
  RequestPtr request_of(RequestId id) const { return requests_[static_cast<std::size_t>(place_of(id))]; }

  void receive(Event event);

  StreamHub& hub_;
  std::vector<RequestId> ids_;        // those that have been submitted
  std::vector<RequestPtr> requests_;  // … by place
  std::size_t running_ = 0;
  Permit permit_;
  net::EventSignal signal_;
  std::vector<Event> events_;
  std::size_t unread_ = 0;  // bytes that events_ stands for
  bool slow_ = false;
  bool cancel_asked_ = false;
};

}  // namespace chasqui
