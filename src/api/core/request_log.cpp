#include "api/core/request_log.h"

#include <array>
#include <cmath>
#include <utility>

#include "api/core/errors.h"
#include "base/json_writer.h"
#include "base/log.h"

namespace chasqui {
namespace {

constexpr std::size_t kPromptMax = 8 * 1024;
constexpr int kClientLeft = 499;  // as nginx says it

double rounded_ms(Duration time) { return std::round(to_milliseconds(time) * 1000) / 1000; }

std::string_view or_dash(std::string_view text) { return text.empty() ? std::string_view("-") : text; }

// How routes end, and what their requests are called in a short line; the first that fits.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKinds = {{{"/chat/completions", "chat"},
                                                                                  {"/api/chat", "chat"},
                                                                                  {"/messages", "messages"},
                                                                                  {"/responses", "response"},
                                                                                  {"/completions", "completion"},
                                                                                  {"/completion", "completion"},
                                                                                  {"/infill", "infill"},
                                                                                  {"/transcriptions", "transcription"},
                                                                                  {"generate", "generate"}}};

// A route has the names of its client's sessions in it, so nothing of its text is printed.
std::string_view word_for(std::string_view route) {
  if (route.starts_with("/v1/sessions/") || route.starts_with("session.")) return "session";
  for (const auto& [ending, kind] : kKinds) {
    if (route.ends_with(ending)) return kind;
  }
  return "request";
}

std::string time_in_words(Duration time) {
  const auto ms = static_cast<std::int64_t>(std::llround(to_milliseconds(time)));
  if (ms < 1000) return std::to_string(ms) + "ms";
  const std::int64_t tenths = (ms + 50) / 100;
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + 's';
}

void write_short_line(const RequestRecord& record) {
  const std::string line = short_request_line(record);
  // A request of the local socket has no id but the engine's.
  const std::string id = record.client_id.empty() ? std::to_string(record.id.value) : record.client_id;
  if (record.error.empty()) return log_info(line, {{"id", id}});
  log_info(line, {{"id", id}, {"error", record.error}});
}

}  // namespace

std::string_view name(RequestKind kind) {
  switch (kind) {
    case RequestKind::generation: return "generation";
    case RequestKind::embedding: return "embedding";
    case RequestKind::ranking: return "ranking";
  }
  return "generation";
}

std::string short_request_line(const RequestRecord& record) {
  const bool generates = record.kind == RequestKind::generation;
  std::string out = std::to_string(record.status()) + ' ' + time_in_words(record.ended - record.began) + ' ' +
                    std::to_string(record.usage.prompt);
  if (generates) out += "→" + std::to_string(record.usage.completion);
  out += " tok ";
  out += generates ? word_for(record.route) : name(record.kind);
  out += ' ';
  append_json_string(out, record.model);
  out += " from ";
  out += or_dash(record.client);
  return out;
}

int RequestRecord::status() const {
  if (refused_with != 0) return refused_with;
  if (!finished) return kClientLeft;
  if (reason == FinishReason::cancelled && !asked) return kClientLeft;
  return 200;
}

std::string_view RequestRecord::finish() const {
  if (finished) return name(reason);
  return refused_with != 0 ? "refused" : "cancelled";
}

RequestNote::~RequestNote() {
  for (const auto& record : records_) log_.ended(record);
}

void RequestNote::refused(const Error& error) {
  records_.front()->refused_with = error_row(error.code).status;
  records_.front()->error = name(error.code);
}

void RequestNote::submitted(const Request& request, bool stream) {
  if (records_.back()->submitted) records_.push_back(std::make_shared<RequestRecord>(*records_.front()));
  const std::shared_ptr<RequestRecord>& record = records_.back();
  record->id = request.id;
  record->arrival = request.arrival;
  record->service_class = request.service_class;
  record->stream = stream;
  record->submitted = true;
  log_.open_.emplace(request.id, record);
}

void RequestNote::computed(TimePoint arrival, const Usage& usage, bool left) {
  RequestRecord& record = *records_.front();
  record.arrival = arrival;
  record.submitted = true;
  record.finished = true;
  record.usage = usage;
  if (left) record.reason = FinishReason::cancelled;
}

RequestNotePtr RequestLog::open(std::string route, const Caller& caller, std::string_view traceparent,
                                std::string_view tracestate, std::string_view body) {
  auto record = std::make_shared<RequestRecord>();
  record->route = std::move(route);
  record->tenant = keys_.name_of(caller.tenant);
  record->service_class = caller.service_class;
  record->began = clock_.now();
  if (config_.log_prompts) record->prompt = body.substr(0, kPromptMax);
  if (auto trace = read_trace_parent(traceparent, tracestate)) {
    record->trace = std::move(*trace);
  } else if (config_.traces) {
    record->trace.trace = random_hex(32);
  }
  return std::make_shared<RequestNote>(*this, std::move(record));
}

void RequestLog::finished(const Event& event) {
  const auto found = open_.find(event.request);
  if (found == open_.end()) return;
  const std::shared_ptr<RequestRecord> record = std::move(found->second);
  open_.erase(found);
  record->finished = true;
  record->reason = event.reason;
  record->asked = event.asked;
  record->usage = event.usage;
  record->chunks = event.chunks;
  if (event.reason == FinishReason::error) {
    record->error = name(event.error.code);
    // A stream has its 200 before anything can go wrong.
    if (!record->stream) record->refused_with = error_row(event.error.code).status;
  }
  if (!record->handler_ended) return;
  record->ended = clock_.now();  // its client left before the worker was done with it
  tell(record);
}

void RequestLog::ended(const std::shared_ptr<RequestRecord>& record) {
  record->ended = clock_.now();
  record->handler_ended = true;
  if (record->finished || !record->submitted) tell(record);
}

std::vector<std::shared_ptr<RequestRecord>> RequestLog::ended_since(TimePoint begin) const {
  std::vector<std::shared_ptr<RequestRecord>> out;
  for (const auto& record : kept_) {
    if (record->ended >= begin) out.push_back(record);
  }
  return out;
}

void RequestLog::tell(const std::shared_ptr<RequestRecord>& record) {
  kept_.push_back(record);
  if (kept_.size() > kKept) kept_.pop_front();
  if (config_.lines) write_line(*record);
  for (const auto& watcher : watchers_) watcher(record);
}

void RequestLog::write_line(const RequestRecord& record) const {
  if (!log_enabled(LogLevel::info)) return;
  const Usage& usage = record.usage;
  const Duration reading = record.submitted ? record.arrival - record.began : Duration::zero();
  if (config_.log_prompts) log_info("prompt", {{"request", record.id.value}, {"body", record.prompt}});
  if (config_.short_lines && log_format() == LogFormat::text) return write_short_line(record);
  log_info("request", {{"request", record.id.value},
                       {"request_id", or_dash(record.client_id)},
                       {"client", or_dash(record.client)},
                       {"trace", or_dash(record.trace.trace)},
                       {"tenant", or_dash(record.tenant)},
                       {"class", name(record.service_class)},
                       {"route", record.route},
                       {"kind", name(record.kind)},
                       {"model", or_dash(record.model)},
                       {"status", record.status()},
                       {"finish", record.finish()},
                       {"error", or_dash(record.error)},
                       {"stream", record.stream},
                       {"total_ms", rounded_ms(record.ended - record.began)},
                       {"tokenize_ms", rounded_ms(reading)},
                       {"queue_ms", rounded_ms(usage.queue)},
                       {"prefill_ms", rounded_ms(usage.prefill)},
                       {"decode_ms", rounded_ms(usage.decode)},
                       {"prompt_tokens", usage.prompt},
                       {"cached_tokens", usage.cached},
                       {"completion_tokens", usage.completion},
                       {"steps", usage.steps},
                       {"shared_steps", usage.shared},
                       {"preemptions", usage.preemptions},
                       {"cpu_ms", rounded_ms(usage.cpu)},
                       {"joules", usage.joules},
                       {"draft_tokens", usage.draft_tokens},
                       {"accepted_tokens", usage.accepted_tokens},
                       {"forced_tokens", usage.forced_tokens}});
}

}  // namespace chasqui
