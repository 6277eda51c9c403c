// The loop's end of a running request. StreamHub takes what the engine has produced, once per wake-up, and hands each
// event to the Generation it belongs to; a Generation is awaited by one handler and cancels its request when it is
// destroyed before the end. Loop thread only.
//
// Text need not wake the handler: while it waits, its TextSink is given the text, all of one wake-up together, and the
// handler sleeps on until something else happens, or the sink takes no more. Resuming a coroutine for each token would
// cost more than the token.
//
// bounded: a handler whose client does not read stops taking events; past `unread_max` bytes the request is cancelled,
// its text is dropped, and the handler sees slow() (worker-never-waits).
#pragma once

#include <cstddef>
#include <deque>
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

// Where text events go instead of waking the handler. Neither of the two may resume it, destroy a Generation, or throw.
class TextSink {
 public:
  virtual ~TextSink() = default;
  // `out` is empty at the first text of a wake-up, and kept until flush(). May take what the event holds. False: this
  // one is taken, but none after it, and flush() does not come: `out` has to be used before.
  virtual bool text(Event& event, std::string& out) = 0;
  // After the last text of a wake-up. False: none is taken any more.
  virtual bool flush(std::string& out, TimePoint now) = 0;
};

class StreamHub {
 public:
  StreamHub(Engine& engine, net::EventLoop& loop, std::size_t unread_max)
      : engine_(engine), loop_(loop), unread_max_(unread_max) {}

  // Called for every wake-up of the engine.
  void deliver();
  // Sees each finished event first, also those whose handler has gone. Set before the loop runs.
  void on_finished(std::function<void(const Event&)> watcher) { watcher_ = std::move(watcher); }
  // The same for text events.
  void on_text(std::function<void(const Event&)> watcher) { text_watcher_ = std::move(watcher); }
  // For a client that asks for it and waits for the end all the same: its finished event says so.
  void cancel(RequestId request);
  // Ends requests with an error, of a worker that does not answer; none: all. What it says of them later is dropped.
  // Returns how many that were.
  std::size_t give_up(const std::optional<std::vector<RequestId>>& requests, const Error& error);
  // Null when no client reads its answer.
  RequestPtr request_of(RequestId id) const;
  // All that run or wait and whose answer a client reads, in no order.
  std::vector<RequestPtr> requests() const;

 private:
  friend class Generation;

  void finish(Event event);
  void speak(Generation& generation, TimePoint now);
  void note_place(Event&& event);
  void tell_places();

  Engine& engine_;
  net::EventLoop& loop_;
  const std::size_t unread_max_;
  std::function<void(const Event&)> watcher_;
  std::function<void(const Event&)> text_watcher_;
  std::unordered_map<RequestId, Generation*> open_;
  std::unordered_set<RequestId> given_up_;  // their worker has not ended them yet
  std::vector<Event> events_;
  // While deliver() runs: those with text for their sinks; for each event the next one of the same Generation.
  std::vector<Generation*> speaking_;
  std::vector<std::uint32_t> next_;
  std::string out_;  // of one sink at a time
  // Requests whose clients have not been told yet where they stand. A worker says that of all that wait at once; a
  // wake-up tells a few, so that thousands who wait do not hold the loop up.
  std::deque<RequestId> places_;
};

class Generation {
 public:
  // Submits the request. Errors are those of Engine::submit. The permit goes with the finished event,
  // when the slot is free again, however slowly the client reads the rest; with the Generation where that goes first,
  // since the client has left, up to a step before the slot is free.
  static Result<std::unique_ptr<Generation>> start(StreamHub& hub, RequestPtr request, Permit permit);
  // The same for several that one client waits for. Event::choice is the place in the list; an error means that none
  // of them runs.
  static Result<std::unique_ptr<Generation>> start(StreamHub& hub, std::vector<RequestPtr> requests, Permit permit,
                                                   Engine::Entry entry = Engine::Entry::fresh);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // True when there is something to take(), interrupt() was called or the sink takes no more; false when `deadline`
  // came first. Text goes to the sink meanwhile, if there is one.
  net::Awaitable<bool> wait_until(TimePoint deadline, TextSink* sink = nullptr);
  // Replaces the content of `events` by what has come since the last call.
  void take(std::vector<Event>& events);
  // For a client that cannot be told where its request stands while it waits.
  void ignore_places() { wants_places_ = false; }
  // The permit stays with it after the end, for a request that may go on as another one; until take_permit().
  void keep_permit() { keeps_permit_ = true; }
  Permit take_permit() { return std::move(permit_); }
  // Makes a wait return, for a client that has gone.
  void interrupt() { signal_.notify(); }

  bool slow() const { return slow_; }

 private:
  friend class StreamHub;
  Generation(StreamHub& hub, Permit permit) : hub_(hub), permit_(std::move(permit)), signal_(hub.loop_) {}

  void cancel_all();
  std::ptrdiff_t place_of(RequestId id) const;
  RequestPtr request_of(RequestId id) const { return requests_[static_cast<std::size_t>(place_of(id))]; }

  // Text for the sink waits in the hub until all events of the wake-up are known: the place of one in its list.
  void receive(Event& event, std::uint32_t place);
  void keep(Event&& event);
  void keep_unsaid();

  static constexpr std::uint32_t kNone = UINT32_MAX;

  StreamHub& hub_;
  TextSink* sink_ = nullptr;
  std::uint32_t first_unsaid_ = kNone;
  std::uint32_t last_unsaid_ = kNone;
  std::vector<RequestId> ids_;        // those that have been submitted
  std::vector<RequestPtr> requests_;  // … by place
  std::size_t running_ = 0;
  Permit permit_;
  net::EventSignal signal_;
  std::vector<Event> events_;
  std::optional<Event> place_;  // where it stands, as long as its id is in StreamHub::places_
  bool wants_places_ = true;
  std::size_t unread_ = 0;  // bytes that events_ stands for
  // Tokens that the engine tells again, all at once, of an answer that has begun elsewhere: no client reads them, and
  // they are bounded by the request.
  std::size_t retold_ = 0;
  bool slow_ = false;
  bool cancel_asked_ = false;
  bool keeps_permit_ = false;
};

}  // namespace chasqui
