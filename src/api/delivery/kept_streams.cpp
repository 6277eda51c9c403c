#include "api/delivery/kept_streams.h"

#include <algorithm>
#include <exception>

#include "api/core/answer_sinks.h"
#include "api/core/errors.h"
#include "api/core/frontend.h"
#include "base/log.h"
#include "base/random_id.h"
#include "net/sse.h"

namespace chasqui {
namespace {

constexpr std::string_view kIdHeader = "X-Conversation-Id";
constexpr std::string_view kWishHeader = "X-Resumable";
constexpr std::size_t kIdBytes = kSizeLimit<"resume_id_bytes">;
constexpr std::size_t kChunk = 64 * 1024;
constexpr std::size_t kForgottenBytes = kSizeLimit<"resume_forgotten_bytes">;

void notify_all(const std::vector<net::EventSignal*>& readers) {
  for (net::EventSignal* reader : readers) reader->notify();
}

bool ends_cancelled(const std::vector<Event>& events) {
  return !events.empty() && events.back().kind == Event::Kind::finished &&
         events.back().reason == FinishReason::cancelled;
}

// What another node has told already brings the writer to where it was there, and is not told again.
void drop_told(AnswerWriter& writer, std::vector<Event>& events, std::size_t& tokens) {
  std::string told;
  auto each = events.begin();
  for (; tokens > 0 && each != events.end() && each->kind != Event::Kind::finished; ++each) {
    if (each->kind != Event::Kind::text) continue;
    write_events(writer, {&*each, 1}, told);
    tokens -= std::min(tokens, static_cast<std::size_t>(each->tokens));
  }
  events.erase(events.begin(), each);
}

}  // namespace

// One connection that reads a stream.
class KeptStreams::Reading {
 public:
  Reading(KeptStreams& owner, Frontend& frontend, KeptStreamPtr stream)
      : signal(frontend.loop), owner_(owner), frontend_(frontend), stream_(std::move(stream)) {
    stream_->readers.push_back(&signal);
    if (stream_->generation != nullptr) stream_->generation->interrupt();
  }
  ~Reading() {
    std::erase(stream_->readers, &signal);
    if (!stream_->readers.empty()) return;
    stream_->left = frontend_.clock.now();
    if (owner_.draining_ && stream_->move == KeptStream::Move::none) owner_.end_unread(*stream_);
    if (stream_->generation != nullptr) stream_->generation->interrupt();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  net::EventSignal signal;

 private:
  KeptStreams& owner_;
  Frontend& frontend_;
  const KeptStreamPtr stream_;
};

Result<std::optional<std::string>> KeptStreams::wish(const net::HttpRequest& request) {
  if (const auto id = request.header(kIdHeader)) {
    const bool printable = std::ranges::all_of(*id, [](char c) { return c > ' ' && c < 0x7f; });
    if (id->empty() || id->size() > kIdBytes || !printable) {
      return invalid_field(std::string(kIdHeader),
                           std::string(kIdHeader) + " must be 1 to 256 printable ASCII characters without blanks");
    }
    return std::optional<std::string>(*id);
  }
  const auto wished = request.header(kWishHeader);
  if (!wished || *wished == "0" || *wished == "false") return std::optional<std::string>();
  return std::optional<std::string>(random_id("stream-"));
}

Result<void> KeptStreams::room_for(std::uint32_t tenant, const std::string& id) const {
  if (by_name_.contains({tenant, id})) return {};  // it takes that one's place
  const auto of_tenant = [tenant](const auto& entry) { return entry.first.first == tenant; };
  const auto over = [](const auto& entry) { return entry.second->done && entry.second->readers.empty(); };
  const auto mine = static_cast<std::size_t>(std::ranges::count_if(by_name_, of_tenant));
  const bool mine_over = std::ranges::any_of(by_name_, [&](const auto& e) { return of_tenant(e) && over(e); });
  if (tenant != 0 && mine >= limits_.tenant_streams && !mine_over) {
    return Error{ErrorCode::quota_exceeded,
                 "at most " + std::to_string(limits_.tenant_streams) +
                     " resumable streams run at once for one key; leave out X-Conversation-Id, or come back later",
                 "", limits_.ttl};
  }
  if (by_name_.size() >= limits_.streams && std::ranges::none_of(by_name_, over)) {
    return Error{ErrorCode::overloaded,
                 "at most " + std::to_string(limits_.streams) +
                     " resumable streams run at once; leave out X-Conversation-Id, or come back later",
                 "", limits_.ttl};
  }
  return {};
}

Result<KeptStreamPtr> KeptStreams::start(Frontend& frontend, StreamHub& hub, std::string id,
                                         std::unique_ptr<Generation> generation, Answer answer) {
  const std::uint32_t tenant = answer.request->tenant.id;
  if (const KeptStreamPtr before = find(tenant, id)) stop(before);
  if (const auto room = room_for(tenant, id); !room) return room.error();
  // The one that has been over for longest makes room, this tenant's first.
  const auto drop_oldest = [&](bool own) {
    KeptStreamPtr oldest;
    for (const auto& [name, stream] : by_name_) {
      if (!stream->done || !stream->readers.empty() || (own && name.first != tenant)) continue;
      if (oldest == nullptr || stream->left < oldest->left) oldest = stream;
    }
    if (oldest != nullptr) forget(oldest);
  };
  const auto mine = std::ranges::count_if(by_name_, [tenant](const auto& e) { return e.first.first == tenant; });
  if (tenant != 0 && static_cast<std::size_t>(mine) >= limits_.tenant_streams) drop_oldest(true);
  if (by_name_.size() >= limits_.streams) drop_oldest(false);

  auto stream = std::make_shared<KeptStream>(frontend.loop, hub, tenant, std::move(id), limits_.bytes);
  stream->started_at = frontend.clock.unix_seconds();
  stream->left = frontend.clock.now();
  stream->generation = generation.get();
  stream->requests.push_back(answer.request->id);
  stream->movable = answer.on_moved != nullptr;
  if (answer.told) stream->ring.go_on(answer.told->end, answer.told->bytes);
  for (const RequestPtr& other : answer.others) stream->requests.push_back(other->id);
  by_name_.emplace(std::pair(tenant, stream->id), stream);
  running_.push_back(stream.get());
  metrics_.streams.set(static_cast<std::int64_t>(by_name_.size()));
  frontend.loop.spawn(keep(frontend, stream, std::move(generation), std::move(answer)), "kept stream");
  return stream;
}

KeptStreamPtr KeptStreams::find(std::uint32_t tenant, const std::string& id) const {
  const auto found = by_name_.find({tenant, id});
  return found != by_name_.end() ? found->second : nullptr;
}

void KeptStreams::stop(const KeptStreamPtr& stream) {
  if (!stream->done) {
    for (const RequestId request : stream->requests) stream->hub.cancel(request);
  }
  forget(stream);
}

void KeptStreams::forget(const KeptStreamPtr& stream) {
  const auto found = by_name_.find({stream->tenant, stream->id});
  if (found != by_name_.end() && found->second == stream) by_name_.erase(found);
  metrics_.streams.set(static_cast<std::int64_t>(by_name_.size()));
  // Nothing counts it any more, and readers that take a byte now and then may have it for hours; not while the server
  // ends.
  if (!draining_) stream->ring.shrink(kForgottenBytes);
  stream->forget.notify();
}

void KeptStreams::end_unread(KeptStream& stream) {
  stream.stop = true;
  if (stream.generation != nullptr) stream.generation->interrupt();
  stream.forget.notify();
}

void KeptStreams::drain(std::function<void()> drained) {
  drained_ = std::move(drained);
  draining_ = true;
  for (KeptStream* stream : running_) {
    if (stream->readers.empty() && stream->move == KeptStream::Move::none) end_unread(*stream);
  }
  if (running_.empty()) std::exchange(drained_, nullptr)();
}

net::Awaitable<void> KeptStreams::keep(Frontend& frontend, KeptStreamPtr stream, std::unique_ptr<Generation> generation,
                                       Answer answer) {
  try {
    co_await pump(frontend, *stream, generation, answer);
  } catch (const std::exception& e) {  // there is no memory for its frames
    log_error("a stream that is kept has failed", {{"id", stream->id}, {"reason", e.what()}});
  }
  stream->generation = nullptr;
  const bool moved = stream->move == KeptStream::Move::done;
  if (!moved) stream->move = KeptStream::Move::none;  // it has ended otherwise, or could not be passed on
  generation.reset();             // cancels what still runs
  // Its pictures count as waiting, and its line is written, when these go; its model may go after them.
  answer.request.reset();
  answer.others.clear();
  answer.note.reset();
  answer.writer.reset();
  answer.on_moved = nullptr;
  answer.before_end = nullptr;
  answer.use.reset();
  stream->done = true;
  if (stream->readers.empty()) stream->left = frontend.clock.now();
  notify_all(stream->readers);
  // It can be read again for a while. A notification means that it has been forgotten, or that the server ends.
  const bool named = find(stream->tenant, stream->id) == stream;
  if (named && !stream->stop && !moved && !draining_)
    co_await stream->forget.wait_until(frontend.clock.now() + limits_.ttl);
  forget(stream);
  std::erase(running_, stream.get());
  if (draining_ && running_.empty() && drained_) std::exchange(drained_, nullptr)();
}

net::Awaitable<void> KeptStreams::pump(Frontend& frontend, KeptStream& stream, std::unique_ptr<Generation>& generation,
                                       Answer& answer) {
  std::size_t running = 1 + answer.others.size();
  std::vector<Event> events;
  std::string frames;
  std::size_t told = answer.request->begun.size();  // tokens that were told before
  const std::function<bool()> gone = [&] { return stream.stop || generation->slow(); };
  const Duration ping_every = answer.request->ping_every.value_or(frontend.config.ping_every);
  while (!stream.whole) {
    const bool read = !stream.readers.empty();
    const TimePoint until = read ? frontend.clock.now() + ping_every : stream.left + limits_.ttl;
    const Drained drained = co_await drain_events(*generation, answer, until, nullptr, gone, events);
    if (drained == Drained::ended) co_return;
    if (drained == Drained::silence && !read && stream.readers.empty()) {
      metrics_.abandoned.add();
      co_return;
    }
    frames.clear();
    drop_told(*answer.writer, events, told);
    if (stream.move == KeptStream::Move::stops && ends_cancelled(events)) {
      const bool goes_on = co_await pass_on(stream, generation, answer, events);
      if (!goes_on) co_return;
      told = answer.request->begun.size();
      continue;
    }
    if (drained == Drained::events) {
      stream.whole = write_events(*answer.writer, events, frames, &running);
      stream.failed =
          stream.whole && std::ranges::any_of(events, [](const Event& event) { return failure_of(event).has_value(); });
    } else {
      net::append_sse_comment(frames, "ping");
    }
    append(stream, frames);
  }
}

void KeptStreams::append(KeptStream& stream, const std::string& frames) {
  std::string bytes;
  append_with_ids(frames, stream.ring.end(), bytes);
  stream.ring.append(bytes);
  if (!bytes.empty()) notify_all(stream.readers);
}

// The end of the part here is no end of the answer: it is not told.
net::Awaitable<bool> KeptStreams::pass_on(KeptStream& stream, std::unique_ptr<Generation>& generation, Answer& answer,
                                          std::vector<Event>& events) {
  std::string frames;
  write_events(*answer.writer, std::span(events).first(events.size() - 1), frames);
  append(stream, frames);
  MovedStream moved{.name = stream.id, .told = {.end = stream.ring.end(), .bytes = ""}};
  stream.ring.copy(stream.ring.begin(), limits_.bytes, moved.told.bytes);
  moved.tokens = std::move(events.back().generated);
  Permit permit = generation->take_permit();
  net::Awaitable<Result<std::unique_ptr<Resumed>>> passing = answer.on_moved(std::move(moved), std::move(permit));
  Result<std::unique_ptr<Resumed>> passed = co_await std::move(passing);
  if (passed && *passed != nullptr) {
    go_on(stream, generation, answer, std::move(**passed));
    co_return true;
  }
  if (passed) {
    stream.move = KeptStream::Move::done;
    co_return false;
  }
  stream.stays = passed.error();
  frames.clear();
  answer.writer->fail(passed.error(), frames);
  append(stream, frames);
  stream.whole = stream.failed = true;
  co_return false;
}

// As at another node: what was told is told to a new writer alone.
void KeptStreams::go_on(KeptStream& stream, std::unique_ptr<Generation>& generation, Answer& answer, Resumed resumed) {
  resumed.answer.note = std::move(answer.note);
  resumed.answer.use = std::move(answer.use);
  answer = std::move(resumed.answer);
  generation = std::move(resumed.generation);
  if (answer.note) answer.note->submitted(*answer.request, answer.stream);
  stream.generation = generation.get();
  stream.requests = {answer.request->id};
  call_off_move(stream, std::move(resumed.why));
}

KeptStreamPtr KeptStreams::ask_move(RequestId request) {
  const auto makes = [request](const auto& entry) {
    const KeptStream& stream = *entry.second;
    return stream.movable && !stream.done && stream.move == KeptStream::Move::none &&
           stream.requests.front() == request;
  };
  const auto found = std::ranges::find_if(by_name_, makes);
  if (found == by_name_.end()) return nullptr;
  found->second->move = KeptStream::Move::asked;
  return found->second;
}

void KeptStreams::begin_move(KeptStream& stream) {
  CHECK(stream.move == KeptStream::Move::asked && stream.generation != nullptr, "a stream is moved that cannot be");
  stream.move = KeptStream::Move::stops;
  stream.generation->keep_permit();
  stream.hub.cancel(stream.requests.front());
}

void KeptStreams::call_off_move(KeptStream& stream, Error why) {
  stream.move = KeptStream::Move::none;
  stream.stays = std::move(why);
  notify_all(stream.readers);
  if (draining_ && !stream.done && stream.readers.empty()) end_unread(stream);
}

net::Awaitable<Result<std::string>> KeptStreams::moved(Frontend& frontend, KeptStreamPtr stream) {
  net::EventSignal signal(frontend.loop);
  stream->readers.push_back(&signal);
  while (!stream->done && stream->move == KeptStream::Move::stops) co_await signal.wait();
  std::erase(stream->readers, &signal);
  if (stream->move == KeptStream::Move::done) co_return stream->id;
  if (stream->stays) co_return *stream->stays;
  co_return Error{ErrorCode::conflict, "the answer has ended before it could be moved", ""};
}

net::Awaitable<void> KeptStreams::follow(Frontend& frontend, net::HttpExchange& exchange, KeptStreamPtr stream,
                                         std::uint64_t from) {
  Reading reading(*this, frontend, stream);
  exchange.on_client_gone([&reading] { reading.signal.notify(); });
  exchange.add_response_header(kIdHeader, stream->id);
  net::HttpHeaders headers = net::sse_headers();
  bool open = co_await exchange.start_stream(200, std::move(headers));
  if (open && exchange.request().method == net::HttpMethod::head) {
    co_await exchange.finish_stream();
    open = false;
  }
  std::string out;
  while (open && !exchange.client_gone()) {
    if (from < stream->ring.begin()) {
      metrics_.behind.add();
      break;  // the connection closes
    }
    out.clear();
    stream->ring.copy(from, kChunk, out);
    from += out.size();
    const bool last = stream->done && from == stream->ring.end();
    if (last && stream->whole) {
      if (stream->failed) exchange.stream_failed();
      co_await exchange.finish_stream(out);
      break;
    }
    if (out.empty() && last) break;
    if (out.empty()) {
      co_await reading.signal.wait();
    } else {
      open = co_await exchange.write_chunk(out);
    }
  }
  exchange.on_client_gone({});
}

}  // namespace chasqui
