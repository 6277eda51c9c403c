#include "api/answer.h"

#include <array>
#include <cstdio>

#include "api/answer_sinks.h"
#include "api/anthropic.h"
#include "api/errors.h"
#include "api/ollama.h"
#include "api/stream_routes.h"
#include "net/sse.h"

namespace chasqui {
namespace {

// Where nobody has computed anything better.
constexpr Duration kRetryAfterUnknown = seconds(1);

net::HttpResponse error_response(std::string_view path, const Error& error) {
  const ErrorRow row = error_row(error.code);
  net::HttpResponse response(row.status, "application/json",
                             is_anthropic(path) ? anthropic_error_body(error)
                             : is_ollama(path)  ? ollama_error_body(error.message)
                                                : error_body(error));
  if (!row.retry) return response;
  const Duration wait = error.retry_after > Duration::zero() ? error.retry_after : kRetryAfterUnknown;
  response.headers.add("Retry-After", std::to_string(std::chrono::ceil<seconds>(wait).count()));
  response.headers.add("retry-after-ms", std::to_string(std::chrono::ceil<milliseconds>(wait).count()));
  return response;
}

// As browsers and proxies show it: https://www.w3.org/TR/server-timing/
std::string server_timing(const Usage& usage) {
  std::array<char, 160> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "queue;dur=%.3f, prefill;dur=%.3f, decode;dur=%.3f",
                    to_milliseconds(usage.queue), to_milliseconds(usage.prefill), to_milliseconds(usage.decode));
  return {text.data(), static_cast<std::size_t>(size)};
}

// The wait is left out as long as nothing has ended that it could be predicted from.
void write_queued(const Event& event, std::string& out) {
  std::array<char, 64> text{};
  const char* const format = event.wait > Duration::zero() ? "queued position=%d wait=%.1fs" : "queued position=%d";
  const int size = std::snprintf(text.data(), text.size(), format, event.position, to_seconds(event.wait));
  net::append_sse_comment(out, {text.data(), static_cast<std::size_t>(size)});
}

}  // namespace

RequestNotePtr open_note(const Service& service, const Caller& caller, const net::HttpRequest& request) {
  if (service.requests == nullptr) return nullptr;
  RequestNotePtr note =
      service.requests->open(request.path, caller, request.header("traceparent").value_or(std::string_view()),
                             request.header("tracestate").value_or(std::string_view()), request.body);
  note->called(request.header("X-Request-Id").value_or(std::string_view()));
  return note;
}

void note_refused(const RequestNotePtr& note, const Error& error) {
  if (note) note->refused(error);
}

Result<std::unique_ptr<Generation>> submit(Service& service, const Answer& answer, Permit permit) {
  std::vector<RequestPtr> requests = answer.others;
  requests.insert(requests.begin(), answer.request);
  std::size_t tokens = 0;
  for (const RequestPtr& request : requests) tokens += request->prompt.size();
  const Request& first = *answer.request;
  const TimePoint now = service.clock.now();
  const Duration wait_max =
      first.first_token_deadline == kNever ? Duration::max() : std::max(first.first_token_deadline - now, Duration(0));
  auto weighed = service.admission.weigh(permit, first.service_class, static_cast<TokenCount>(tokens),
                                         service.engine.load(), now, requests.size(), wait_max);
  if (!weighed) {
    note_refused(answer.note, weighed.error());
    return weighed.error();
  }
  auto started = Generation::start(service.streams, requests, std::move(permit));
  if (started && answer.reasoning_switch) service.switches.add(answer.reasoning_switch);
  if (!started) {
    note_refused(answer.note, started.error());
  } else if (answer.note) {
    for (const RequestPtr& request : requests) answer.note->submitted(*request, answer.stream);
  }
  return started;
}

// The finished event is the last of all.
net::Awaitable<void> settle_end(const Answer& answer, std::vector<Event>& events) {
  if (!answer.before_end || events.empty() || events.back().kind != Event::Kind::finished) co_return;
  net::Awaitable<Result<void>> waiting = answer.before_end();
  const Result<void> settled = co_await std::move(waiting);
  if (settled) co_return;
  events.back().reason = FinishReason::error;
  events.back().error = settled.error();
}

namespace {

net::Awaitable<void> stream_answer(Service& service, net::HttpExchange& exchange, Generation& generation,
                                   const Answer& answer, std::size_t running) {
  net::HttpHeaders headers = answer.writer->headers();
  bool open = co_await exchange.start_stream(200, std::move(headers));
  StreamSink sink(exchange, *answer.writer, service.clock.now());
  std::vector<Event> events;
  std::string out;
  bool finished = false;
  while (open && !finished) {
    const bool woken = co_await generation.wait_until(sink.said_at() + service.config.ping_every, &sink);
    if (exchange.client_gone() || generation.slow()) co_return;  // the connection closes, the request is cancelled
    sink.check();
    const TimePoint now = service.clock.now();
    out.clear();
    if (woken) {
      generation.take(events);
      co_await settle_end(answer, events);
      finished = write_events(*answer.writer, events, out, &running);
    } else if (now < sink.said_at() + service.config.ping_every) {
      continue;  // it said something while we slept
    } else if (answer.writer->has_comments()) {
      net::append_sse_comment(out, "ping");
    }
    sink.said(now);
    if (!finished) open = co_await exchange.write_chunk(out);  // and what the sink could not write
  }
  if (finished) co_await exchange.finish_stream(out);
}

net::Awaitable<void> collect_answer(net::HttpExchange& exchange, Generation& generation, const Answer& answer,
                                    std::size_t running) {
  std::vector<Event> events;
  std::vector<Collected> answers(running);
  WholeSink sink(*answer.writer, answers);
  generation.ignore_places();
  while (running > 0) {
    co_await generation.wait_until(kNever, &sink);
    if (exchange.client_gone() || generation.slow()) co_return;
    sink.check();
    generation.take(events);
    co_await settle_end(answer, events);
    for (Event& event : events) {
      if (event.kind != Event::Kind::queued) answer.writer->hear(event);
      if (event.kind == Event::Kind::finished) {
        --running;
        if (const auto failure = failure_of(event)) {
          Error error = *failure;
          co_await respond_error(exchange, std::move(error));
          co_return;
        }
      }
      collect(event, answers);
    }
  }
  exchange.add_response_header("Server-Timing", server_timing(answers.front().finished.usage));
  std::string body = answer.writer->whole_of(answers);
  co_await respond_json(exchange, std::move(body));
}

}  // namespace

net::HttpHeaders AnswerWriter::headers() const { return net::sse_headers(); }

void AnswerWriter::fail(const Error& error, std::string& out) { net::append_sse_data_line(out, error_body(error)); }

bool write_events(AnswerWriter& writer, const std::vector<Event>& events, std::string& out, std::size_t* running) {
  bool finished = false;
  for (const Event& event : events) {
    if (event.kind == Event::Kind::queued) {
      if (writer.has_comments()) write_queued(event, out);
    } else if (event.kind == Event::Kind::text) {
      writer.text(event, out);
    } else if (const auto failure = failure_of(event)) {
      writer.fail(*failure, out);
      return true;
    } else {
      writer.end(event, out);
      finished = running == nullptr || --*running == 0;
    }
  }
  return finished;
}

net::Awaitable<void> deliver_answer(Service& service, net::HttpExchange& exchange, Answer answer, Permit permit) {
  if (!answer.skipped_tools.empty()) {
    service.skipped_tools.log_new(answer.skipped_tools);
    exchange.add_response_header("X-Chasqui-Warning", skipped_warning(answer.skipped_tools));
  }
  if (answer.request == nullptr) {
    std::string body = std::move(answer.ready);
    co_await respond_json(exchange, std::move(body));
    co_return;
  }
  if (answer.stream && service.kept != nullptr && !answer.before_end) {
    Result<std::optional<std::string>> name = KeptStreams::wish(exchange.request());
    if (!name) {
      Error error = name.error();
      co_await respond_error(exchange, std::move(error));
      co_return;
    }
    if (*name) {
      std::string id = std::move(**name);
      co_await deliver_kept(service, exchange, std::move(id), std::move(answer), std::move(permit));
      co_return;
    }
  }
  const std::size_t running = 1 + answer.others.size();
  auto started = submit(service, answer, std::move(permit));
  if (!started) {
    Error error = started.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  if (answer.on_submitted) answer.on_submitted();
  Generation& generation = **started;
  exchange.on_client_gone([&generation] { generation.interrupt(); });
  if (answer.stream) {
    co_await stream_answer(service, exchange, generation, answer, running);
  } else {
    co_await collect_answer(exchange, generation, answer, running);
  }
  exchange.on_client_gone({});
}

net::Awaitable<void> respond_error(net::HttpExchange& exchange, Error error) {
  net::HttpResponse response = error_response(exchange.request().path, error);
  co_await exchange.respond(std::move(response));
}

net::Awaitable<void> respond_json(net::HttpExchange& exchange, std::string body) {
  net::HttpResponse response(200, "application/json", std::move(body));
  co_await exchange.respond(std::move(response));
}

std::optional<Error> failure_of(const Event& finished) {
  if (finished.reason == FinishReason::error) return finished.error;
  if (finished.reason == FinishReason::cancelled && !finished.asked) {
    return Error{ErrorCode::unavailable, "the request was cancelled because the server is shutting down", ""};
  }
  return std::nullopt;
}

}  // namespace chasqui
