#include "api/delivery.h"

#include <array>
#include <cstdio>

#include "api/answer_sinks.h"
#include "api/frontend.h"
#include "api/generation.h"
#include "api/served_model.h"
#include "api/skipped_tools.h"
#include "api/stream_offset.h"
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

net::Awaitable<void> stream_answer(const Frontend& frontend, net::HttpExchange& exchange, Generation& generation,
                                   const Answer& answer, std::size_t running) {
  net::HttpHeaders headers = answer.writer->headers();
  bool open = co_await exchange.start_stream(200, std::move(headers));
  StreamSink sink(exchange, *answer.writer, frontend.clock.now());
  std::vector<Event> events;
  std::string out;
  bool finished = false;
  while (open && !finished) {
    const bool woken = co_await generation.wait_until(sink.said_at() + frontend.config.ping_every, &sink);
    if (exchange.client_gone() || generation.slow()) co_return;  // the connection closes, the request is cancelled
    sink.check();
    const TimePoint now = frontend.clock.now();
    out.clear();
    if (woken) {
      generation.take(events);
      co_await settle_end(answer, events);
      finished = write_events(*answer.writer, events, out, &running);
    } else if (now < sink.said_at() + frontend.config.ping_every) {
      continue;  // it said something while we slept
    } else if (answer.writer->has_comments()) {
      net::append_sse_comment(out, "ping");
    }
    sink.said(now);
    if (!finished) open = co_await exchange.write_chunk(out);  // and what the sink could not write
  }
  if (finished) co_await exchange.finish_stream(out);
}

Handled collect_answer(net::HttpExchange& exchange, Generation& generation, const Answer& answer, std::size_t running) {
  std::vector<Event> events;
  std::vector<Collected> answers(running);
  WholeSink sink(*answer.writer, answers);
  generation.ignore_places();
  while (running > 0) {
    co_await generation.wait_until(kNever, &sink);
    if (exchange.client_gone() || generation.slow()) co_return Result<void>();
    sink.check();
    generation.take(events);
    co_await settle_end(answer, events);
    for (Event& event : events) {
      if (event.kind != Event::Kind::queued) answer.writer->hear(event);
      if (event.kind == Event::Kind::finished) {
        --running;
        if (const auto failure = failure_of(event)) co_return *failure;
      }
      collect(event, answers);
    }
  }
  exchange.add_response_header("Server-Timing", server_timing(answers.front().finished.usage));
  std::string body = answer.writer->whole_of(answers);
  co_await respond_json(exchange, std::move(body));
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
  auto begun = kept.start(call.frontend, call.served.streams, std::move(id), std::move(*started), std::move(answer));
  if (!begun) co_return begun.error();
  stream = std::move(*begun);
  co_await kept.follow(call.frontend, call.exchange, std::move(stream), 0);
  co_return Result<void>();
}

}  // namespace

Handled deliver_answer(Call call, Answer answer, Permit permit) {
  Frontend& frontend = call.frontend;
  net::HttpExchange& exchange = call.exchange;
  if (!answer.skipped_tools.empty()) {
    frontend.skipped_tools.log_new(answer.skipped_tools);
    exchange.add_response_header("X-Chasqui-Warning", skipped_warning(answer.skipped_tools));
  }
  if (answer.request == nullptr) {
    std::string body = std::move(answer.ready);
    co_await respond_json(exchange, std::move(body));
    co_return Result<void>();
  }
  if (answer.stream && frontend.kept != nullptr && !answer.before_end) {
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
  Generation& generation = **started;
  exchange.on_client_gone([&generation] { generation.interrupt(); });
  Result<void> delivered;
  if (answer.stream) {
    co_await stream_answer(frontend, exchange, generation, answer, running);
  } else {
    delivered = co_await collect_answer(exchange, generation, answer, running);
  }
  exchange.on_client_gone({});
  co_return delivered;
}

Handled resume_stream(Frontend& frontend, net::HttpExchange& exchange, KeptStreamPtr stream) {
  const Result<std::uint64_t> from = first_byte(exchange.request(), *stream);
  if (!from) co_return from.error();
  frontend.kept->metrics().resumed.add();
  co_await frontend.kept->follow(frontend, exchange, std::move(stream), *from);
  co_return Result<void>();
}

}  // namespace chasqui
