// Streams that outlive their connection. A client that names its stream (X-Conversation-Id, or X-Resumable: 1 for a
// name of ours) gets an answer whose bytes are kept: another connection may go on with it from any byte that is left.
// The generation goes on for `ttl` without a reader, and what it said is kept for as long after its end.
//
// Each has one coroutine that takes the events of the Generation and writes the ring; connections only read the ring,
// at their own pace. One that has fallen behind it is closed. A stream that is forgotten leaves its readers the end of
// the ring; who is further behind is closed, too. Only streams that a client asked to keep come here.
//
// bounded: streams in all, those of one tenant, bytes of each. Nothing is seen by another tenant than its own.
// Loop thread only. Outlives every handler; drain() before the loop ends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/core/answer.h"
#include "api/delivery/kept_stream_limits.h"
#include "api/delivery/stream_ring.h"
#include "base/metric_set.h"
#include "net/event_signal.h"

namespace chasqui {

struct KeptStreamMetrics : MetricSet {
  Gauge streams{*this, {"chasqui_kept_streams", "Resumable streams that run or can still be read."}};
  Counter resumed{*this, {"chasqui_kept_streams_resumed_total", "Connections that went on with a stream."}};
  Counter abandoned{
      *this, {"chasqui_kept_streams_abandoned_total", "Resumable streams that ended because no client came back."}};
  Counter behind{*this, {"chasqui_kept_streams_behind_total", "Readers that fell behind what is kept of a stream."}};
};

struct KeptStream {
  KeptStream(net::EventLoop& loop, StreamHub& from, std::uint32_t of, std::string name, std::size_t bytes)
      : tenant(of), id(std::move(name)), hub(from), ring(bytes), forget(loop) {}

  const std::uint32_t tenant;
  const std::string id;
  StreamHub& hub;               // that its requests run in
  std::int64_t started_at = 0;  // Unix seconds
  StreamRing ring;
  bool done = false;    // no more bytes come
  bool whole = false;   // … because the answer has ended
  bool failed = false;  // … in an error
  bool stop = false;    // its coroutine is to end
  // Another node is to go on with it: it was asked for, it stops, that node can.
  enum class Move { none, asked, stops, done };
  bool movable = false;
  Move move = Move::none;
  std::optional<Error> stays;  // why it was not moved
  std::vector<RequestId> requests;
  Generation* generation = nullptr;  // while it runs
  std::vector<net::EventSignal*> readers;
  TimePoint left{};         // when the last reader went
  net::EventSignal forget;  // of a stream that is done
};
using KeptStreamPtr = std::shared_ptr<KeptStream>;

class KeptStreams {
 public:
  explicit KeptStreams(KeptStreamLimits limits = {}) : limits_(limits) {}

  // What the client asked for: the name of its stream, or nothing. An error names the header.
  static Result<std::optional<std::string>> wish(const net::HttpRequest& request);

  // Starts to keep an answer; one of the same name is stopped. The error: there are too many.
  Result<KeptStreamPtr> start(Frontend& frontend, StreamHub& hub, std::string id,
                              std::unique_ptr<Generation> generation, Answer answer);
  Result<void> room_for(std::uint32_t tenant, const std::string& id) const;
  // Null: none, or another tenant's.
  KeptStreamPtr find(std::uint32_t tenant, const std::string& id) const;
  // The stream of the answer that this request makes, which another node can go on with: until begin_move() or
  // call_off_move() it is not ended where it has no readers. Null: none can, or it moves already.
  KeptStreamPtr ask_move(RequestId request);
  // Stops it, so that another node can go on with it. Its readers are cut off, and can come back there; where that
  // fails, it goes on here. REQUIRES: it is what ask_move() has found, and not done
  void begin_move(KeptStream& stream);
  void call_off_move(KeptStream& stream, Error why);
  // Waits until the other node can. conflict: it has ended by itself; else why it goes on here.
  net::Awaitable<Result<std::string>> moved(Frontend& frontend, KeptStreamPtr stream);
  // Ends it as a client does that cancels, and forgets it; who reads it, and is not far behind, sees its end.
  void stop(const KeptStreamPtr& stream);

  // Sends the client what is left of the stream from `from` on, until its end.
  net::Awaitable<void> follow(Frontend& frontend, net::HttpExchange& exchange, KeptStreamPtr stream,
                              std::uint64_t from);

  // Clients cannot come back any more: streams without readers end now, others when their readers go. `drained` is
  // called once, when none is left.
  void drain(std::function<void()> drained);

  const KeptStreamLimits& limits() const { return limits_; }
  KeptStreamMetrics& metrics() { return metrics_; }

 private:
  class Reading;

  net::Awaitable<void> keep(Frontend& frontend, KeptStreamPtr stream, std::unique_ptr<Generation> generation,
                            Answer answer);
  net::Awaitable<void> pump(Frontend& frontend, KeptStream& stream, std::unique_ptr<Generation>& generation,
                            Answer& answer);
  // False: the stream ends here.
  net::Awaitable<bool> pass_on(KeptStream& stream, std::unique_ptr<Generation>& generation, Answer& answer,
                               std::vector<Event>& events);
  void go_on(KeptStream& stream, std::unique_ptr<Generation>& generation, Answer& answer, Resumed resumed);
  void append(KeptStream& stream, const std::string& frames);
  void end_unread(KeptStream& stream);
  void forget(const KeptStreamPtr& stream);

  const KeptStreamLimits limits_;
  std::map<std::pair<std::uint32_t, std::string>, KeptStreamPtr> by_name_;
  std::vector<KeptStream*> running_;  // each with its coroutine, also those that have no name any more
  std::function<void()> drained_;
  bool draining_ = false;
  KeptStreamMetrics metrics_;
};

}  // namespace chasqui
