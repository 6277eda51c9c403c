#include "api/delivery/delivery.h"

#include <array>
#include <cstdio>

#include "api/body/media_links.h"
#include "api/core/answer_sinks.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/generation.h"
#include "api/core/reading_time.h"
#include "api/core/served_model.h"
#include "api/core/skipped_tools.h"
#include "api/delivery/stream_offset.h"
#include "net/offload.h"
#include "net/sse.h"

namespace chasqui {
namespace {

// As browsers and proxies show it: https://www.w3.org/TR/server-timing/
std::string server_timing(const Usage& usage) {
  std::array<char, 160> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "queue;dur=%.3f, prefill;dur=%.3f, decode;dur=%.3f",
                    to_milliseconds(usage.queue), to_milliseconds(usage.prefill), to_milliseconds(usage.decode));
  return {text.data(), static_cast<std::size_t>(size)};
}

// More is handed over before the rest is written.
constexpr std::size_t kSaidAtOnce = 64 * 1024;

net::Awaitable<void> stream_answer(const Frontend& frontend, net::HttpExchange& exchange, Generation& generation,
                                   const Answer& answer, std::size_t running) {
  net::HttpHeaders headers = answer.writer->headers();
  bool open = co_await exchange.start_stream(200, std::move(headers));
  StreamSink sink(exchange, *answer.writer, frontend.clock.now());
  std::vector<Event> events;
  std::string out;
  const std::function<bool()> gone = [&] { return exchange.client_gone() || generation.slow(); };
  const Duration ping_every = answer.request->ping_every.value_or(frontend.config.ping_every);
  bool finished = false;
  while (open && !finished) {
    const TimePoint until = sink.said_at() + ping_every;
    const Drained drained = co_await drain_events(generation, answer, until, &sink, gone, events);
    if (drained == Drained::ended) co_return;  // the connection closes, the request is cancelled
    const TimePoint now = frontend.clock.now();
    out.clear();
    if (drained == Drained::events) {
      for (std::size_t i = 0; open && !finished && i < events.size(); ++i) {
        finished = write_events(*answer.writer, {&events[i], 1}, out, &running);
        if (finished && failure_of(events[i])) exchange.stream_failed();
        if (finished || out.size() < kSaidAtOnce) continue;
        open = co_await exchange.write_chunk(out);  // the ends of many answers may be long
        out.clear();
      }
    } else if (now < sink.said_at() + ping_every) {
      continue;  // it said something while we slept
    } else {
      answer.writer->ping(out);
    }
    sink.said(now);
    if (!finished) open = co_await exchange.write_chunk(out);  // and what the sink could not write
  }
  if (finished) co_await exchange.finish_stream(out);
}

Error answer_too_large() {
  return invalid_field("n_probs", "the answer has more likely tokens than fit " +
                                      std::to_string(kSizeLimit<"whole_answer_bytes">) +
                                      " bytes of JSON: ask for fewer (n_probs, top_logprobs, logprobs), for fewer "
                                      "answers (n) or tokens, or for a stream");
}

// A long one in the pool.
net::Awaitable<Result<std::string>> write_whole(Frontend& frontend, Answer& answer, std::vector<Collected> answers,
                                                std::size_t bytes) {
  constexpr std::size_t kWrittenAtOnce = 64 * 1024;
  if (answer.writer->stays_on_loop() || bytes + answer.writer->repeated_bytes() <= kWrittenAtOnce) {
    co_return answer.writer->whole(answers);
  }
  net::OffloadTerms terms;
  terms.owner = answer.request->tenant.id;
  terms.can_wait = writing_can_wait(bytes + answer.writer->repeated_bytes());
  auto work = [writer = std::move(answer.writer), answers = std::move(answers)] { return writer->whole(answers); };
  Result<std::string> body = co_await frontend.offload.run(std::move(work), std::move(terms));
  co_return body;
}

Handled collect_answer(Frontend& frontend, net::HttpExchange& exchange, Generation& generation, Answer& answer,
                       std::size_t running) {
  std::vector<Event> events;
  std::vector<Collected> answers(running);
  WholeSink sink(*answer.writer, answers);
  const std::function<bool()> gone = [&] { return exchange.client_gone() || generation.slow(); };
  generation.ignore_places();
  while (running > 0) {
    const Drained drained = co_await drain_events(generation, answer, kNever, &sink, gone, events);
    if (drained == Drained::ended) co_return Result<void>();
    for (Event& event : events) {
      if (event.kind == Event::Kind::finished) {
        --running;
        if (const auto failure = failure_of(event)) co_return *failure;
      }
      sink.take(event);
    }
    if (sink.too_large()) co_return answer_too_large();
  }
  exchange.add_response_header("Server-Timing", server_timing(answers.front().finished.usage));
  const std::string_view type = answer.writer->content_type();
  Result<std::string> body = co_await write_whole(frontend, answer, std::move(answers), sink.bytes());
  if (!body) co_return body.error();
  net::HttpResponse response(200, type, std::move(*body));
  co_await exchange.respond(std::move(response));
  co_return Result<void>();
}

// Where to go on.
Result<std::uint64_t> first_byte(const net::HttpRequest& request, const KeptStream& stream) {
  if (const auto from = request.query("from")) return read_stream_offset(*from, "from", stream.ring);
  const auto last = request.header("Last-Event-ID");
  return read_stream_offset(last.value_or("0"), "Last-Event-ID", stream.ring);
}

// With a Last-Event-ID it goes on with the stream of this name that is there.
Handled deliver_kept(Call call, std::string id, Answer answer, Permit permit) {
  KeptStreams& kept = *call.frontend.kept;
  const std::uint32_t tenant = answer.request->tenant.id;
  KeptStreamPtr stream = kept.find(tenant, id);
  // A client that sends its request again, as those of fetch do, does not want a second answer.
  if (stream != nullptr && call.exchange.request().header("Last-Event-ID")) {
    permit.release();
    Result<void> resumed = co_await resume_stream(call.frontend, call.exchange, std::move(stream));
    co_return resumed;
  }
  if (const auto room = kept.room_for(tenant, id); !room) co_return room.error();
  auto started = submit(call.served, answer, std::move(permit));
  if (!started) co_return started.error();
  if (answer.on_submitted) answer.on_submitted();
  answer.use = std::make_shared<const ModelUse>(call.served);
  const bool goes_on = answer.told != nullptr;  // with what another node has told
  auto begun = kept.start(call.frontend, call.served.streams, std::move(id), std::move(*started), std::move(answer));
  if (!begun) co_return begun.error();
  stream = std::move(*begun);
  Result<std::uint64_t> from = std::uint64_t{0};
  if (goes_on) from = first_byte(call.exchange.request(), *stream);
  if (!from) co_return from.error();
  co_await kept.follow(call.frontend, call.exchange, std::move(stream), *from);
  co_return Result<void>();
}

}  // namespace

Handled deliver_answer(Call call, Answer answer, Permit permit) {
  call.exchange.body_was_read();
  Frontend& frontend = call.frontend;
  net::HttpExchange& exchange = call.exchange;
  std::string warning = skipped_warning(answer.skipped_tools);
  frontend.skipped_tools.log_new(answer.skipped_tools);
  if (answer.request != nullptr && !answer.request->dropped_keywords.empty()) {
    frontend.skipped_tools.log_dropped(answer.request->dropped_keywords);
    warning += (warning.empty() ? "" : "; ") + dropped_warning(answer.request->dropped_keywords);
  }
  if (!warning.empty()) exchange.add_response_header("X-Chasqui-Warning", warning);
  const bool keeps = answer.keep_alive && call.served.keep_loaded && frontend.keys.is_admin(call.caller);
  if (answer.request == nullptr) {
    if (keeps) call.served.keep_loaded(*answer.keep_alive);
    std::string body = std::move(answer.ready);
    co_await respond_json(exchange, std::move(body));
    co_return Result<void>();
  }
  // Only events have the ids that a client goes on from: lines of JSON are a stream like any other.
  const bool events = answer.stream && answer.writer->has_comments();
  if (events && frontend.kept != nullptr) {
    Result<std::optional<std::string>> name = KeptStreams::wish(exchange.request());
    if (!name) co_return name.error();
    if (*name) {
      std::string id = std::move(**name);
      Result<void> kept = co_await deliver_kept(std::move(call), std::move(id), std::move(answer), std::move(permit));
      co_return kept;
    }
  }
  const std::size_t running = 1 + answer.others.size();
  auto started = submit(call.served, answer, std::move(permit));
  if (!started) co_return started.error();
  if (answer.on_submitted) answer.on_submitted();
  if (keeps) call.served.keep_loaded(*answer.keep_alive);
  Generation& generation = **started;
  exchange.on_client_gone([&generation] { generation.interrupt(); });
  Result<void> delivered;
  if (answer.stream) {
    co_await stream_answer(frontend, exchange, generation, answer, running);
  } else {
    delivered = co_await collect_answer(frontend, exchange, generation, answer, running);
  }
  exchange.on_client_gone({});
  co_return delivered;
}

Handled deliver_prepared(Call call, Result<Answer> answer, RequestNotePtr note, Permit permit) {
  if (call.exchange.client_gone()) co_return Result<void>();
  if (!answer) {
    note_refused(note, answer.error());
    co_return answer.error();
  }
  Answer ready = std::move(*answer);
  ready.note = std::move(note);
  Result<void> delivered = co_await deliver_answer(std::move(call), std::move(ready), std::move(permit));
  co_return delivered;
}

KeptStreamPtr stream_gone_on_with(const Call& call) {
  KeptStreams* const kept = call.frontend.kept;
  if (kept == nullptr || !call.exchange.request().header("Last-Event-ID")) return nullptr;
  const auto name = KeptStreams::wish(call.exchange.request());
  return name && *name ? kept->find(call.caller.tenant.id, **name) : nullptr;
}

Handled resume_stream(Frontend& frontend, net::HttpExchange& exchange, KeptStreamPtr stream) {
  const Result<std::uint64_t> from = first_byte(exchange.request(), *stream);
  if (!from) co_return from.error();
  if (stream->readers.size() >= kSizeLimit<"resume_readers">) {  // each is told every token
    co_return Error{ErrorCode::quota_exceeded,
                    "at most " + std::to_string(kSizeLimit<"resume_readers">) + " connections read one stream at once",
                    ""};
  }
  frontend.kept->metrics().resumed.add();
  co_await frontend.kept->follow(frontend, exchange, std::move(stream), *from);
  co_return Result<void>();
}

Handled handle_generation(Call call, PrepareAnswer prepare) {
  const RequestNotePtr note = open_note(call);
  Result<Permit> permit = enter(call);
  if (!permit) {
    note_refused(note, permit.error());
    co_return permit.error();
  }
  if (may_link_media(call.frontend, call.served)) {
    Result<void> brought = co_await bring_linked_media(call);
    if (!brought) {
      note_refused(note, brought.error());
      co_return brought.error();
    }
  }
  net::OffloadTerms terms = reading_terms(call);
  // The job owns the body: the client may leave, and the exchange end, while the pool still reads it.
  auto work = [&served = call.served, prepare, caller = call.caller, body = std::move(call.body)] {
    return prepare(served, caller, body);
  };
  Result<Answer> answer = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  Permit held = std::move(*permit);
  Handled delivering = deliver_prepared(std::move(call), std::move(answer), note, std::move(held));
  Result<void> delivered = co_await std::move(delivering);
  co_return delivered;
}

}  // namespace chasqui
