#include "api/core/answer.h"

#include <array>
#include <cstdio>

#include "api/core/errors.h"
#include "api/core/frontend.h"
#include "api/core/served_model.h"
#include "engine/admission.h"
#include "engine/engine.h"
#include "net/sse.h"

namespace chasqui {
namespace {

// Where no better figure was computed.
constexpr Duration kRetryAfterUnknown = seconds(1);

net::HttpResponse error_response(const Dialect& dialect, const Error& error) {
  const ErrorRow row = error_row(error.code);
  net::HttpResponse response(row.status, "application/json", dialect.error_body(error));
  if (!row.retry && error.retry_after == Duration::zero()) return response;
  const Duration wait = error.retry_after > Duration::zero() ? error.retry_after : kRetryAfterUnknown;
  response.headers.add("Retry-After", std::to_string(std::chrono::ceil<seconds>(wait).count()));
  response.headers.add("retry-after-ms", std::to_string(std::chrono::ceil<milliseconds>(wait).count()));
  return response;
}

// The wait is left out as long as nothing has ended that it could be predicted from.
void write_queued(const Event& event, std::string& out) {
  std::array<char, 64> text{};
  const char* const format = event.wait > Duration::zero() ? "queued position=%d wait=%.1fs" : "queued position=%d";
  const int size = std::snprintf(text.data(), text.size(), format, event.position, to_seconds(event.wait));
  net::append_sse_comment(out, {text.data(), static_cast<std::size_t>(size)});
}

}  // namespace

Answer answer_of(std::vector<RequestPtr> requests, bool stream, std::unique_ptr<AnswerWriter> writer) {
  Answer answer;
  answer.request = std::move(requests.front());
  answer.others.assign(std::make_move_iterator(requests.begin() + 1), std::make_move_iterator(requests.end()));
  answer.stream = stream;
  answer.writer = std::move(writer);
  return answer;
}

RequestNotePtr open_note(const Call& call) {
  if (call.frontend.requests == nullptr) return nullptr;
  const net::HttpRequest& request = call.exchange.request();
  RequestNotePtr note = call.frontend.requests->open(
      request.path, call.caller, request.header("traceparent").value_or(std::string_view()),
      request.header("tracestate").value_or(std::string_view()), call.body);
  note->called(request.header("X-Request-Id").value_or(std::string_view()));
  if (request.peer) note->from(request.peer->address);
  note->chosen(call.served.config.name);
  return note;
}

void note_refused(const RequestNotePtr& note, const Error& error) {
  if (note) note->refused(error);
}

Result<std::unique_ptr<Generation>> submit(ServedModel& served, const Answer& answer, Permit permit) {
  std::vector<RequestPtr> requests = answer.others;
  requests.insert(requests.begin(), answer.request);
  std::size_t tokens = 0;
  for (const RequestPtr& request : requests) tokens += request->prompt.size();
  const Request& first = *answer.request;
  const TimePoint now = served.clock.now();
  const Duration wait_max =
      first.first_token_deadline == kNever ? Duration::max() : std::max(first.first_token_deadline - now, Duration(0));
  auto weighed = served.admission.weigh(permit, first.service_class, static_cast<TokenCount>(tokens),
                                        served.engine.load(), now, requests.size(), wait_max);
  if (!weighed) {
    note_refused(answer.note, weighed.error());
    return weighed.error();
  }
  auto started = Generation::start(served.streams, requests, std::move(permit));
  if (started && answer.reasoning_switch) served.switches.add(answer.reasoning_switch);
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

net::HttpHeaders AnswerWriter::headers() const { return net::sse_headers(); }

void AnswerWriter::ping(std::string& out) {
  if (has_comments()) net::append_sse_comment(out, "ping");
}

void AnswerWriter::fail(const Error& error, std::string& out) { net::append_sse_data_line(out, error_body(error)); }

bool write_events(AnswerWriter& writer, std::span<const Event> events, std::string& out, std::size_t* running) {
  bool finished = false;
  for (const Event& event : events) {
    if (event.kind == Event::Kind::queued) {
      if (writer.has_comments()) write_queued(event, out);
    } else if (event.kind == Event::Kind::progress) {
      writer.progress(event, out);
    } else if (event.kind == Event::Kind::prompt) {
      writer.prompt(event, out);
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

net::Awaitable<void> respond_error(const Dialect& dialect, net::HttpExchange& exchange, Error error) {
  cut_text(error.message);  // it may quote what a client has sent
  cut_text(error.field);
  net::HttpResponse response = error_response(dialect, error);
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
