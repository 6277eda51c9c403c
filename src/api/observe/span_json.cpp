#include "api/observe/span_json.h"

#include <algorithm>

#include "base/json_writer.h"

namespace chasqui {
namespace {

constexpr int kInternal = 1;  // SpanKind
constexpr int kServer = 2;
constexpr int kStatusError = 2;

void text_attribute(JsonWriter& json, std::string_view key, std::string_view value) {
  json.begin_object();
  json.field("key", key);
  json.begin_object("value");
  json.field("stringValue", value);
  json.end_object();
  json.end_object();
}

// 64-bit integers are strings in OTLP's JSON.
void number_attribute(JsonWriter& json, std::string_view key, std::int64_t value) {
  json.begin_object();
  json.field("key", key);
  json.begin_object("value");
  json.field("intValue", std::to_string(value));
  json.end_object();
  json.end_object();
}

void seconds_attribute(JsonWriter& json, std::string_view key, Duration value) {
  json.begin_object();
  json.field("key", key);
  json.begin_object("value");
  json.field("doubleValue", to_seconds(value));
  json.end_object();
  json.end_object();
}

std::string_view operation_of(const RequestRecord& record) {
  if (record.kind == RequestKind::embedding) return "embeddings";
  if (record.kind == RequestKind::ranking) return "rerank";  // the conventions have no word for it
  return record.route.find("chat") != std::string::npos ? "chat" : "text_completion";
}

class SpanTree {
 public:
  SpanTree(JsonWriter& json, const RequestRecord& record, const SpanSource& source)
      : json_(json), record_(record), source_(source), root_(random_hex(16)) {}

  void write() {
    if (!record_.submitted) return write_root(record_.ended);
    const Usage& usage = record_.usage;
    const TimePoint started = record_.arrival + usage.queue;
    const TimePoint first = started + usage.prefill;
    const TimePoint last = first + usage.decode;
    const TimePoint end = std::max(record_.ended, last);  // the handler of a client that left ends first
    write_root(end);
    phase("tokenize", record_.began, record_.arrival);
    phase("queue", record_.arrival, started);
    if (usage.steps > 0) write_prefill(started, first);
    if (usage.completion > 0) phase("decode", first, last);
    phase("write", last, end);
  }

 private:
  // Opens a span; its attributes follow.
  void open(std::string_view name, int kind, const std::string& id, std::string_view parent, TimePoint begin,
            TimePoint end) {
    json_.begin_object();
    json_.field("traceId", record_.trace.trace);
    json_.field("spanId", id);
    if (!parent.empty()) json_.field("parentSpanId", parent);
    if (!record_.trace.state.empty()) json_.field("traceState", record_.trace.state);
    json_.field("name", name);
    json_.field("kind", kind);
    json_.field("startTimeUnixNano", nanoseconds_text(begin));
    json_.field("endTimeUnixNano", nanoseconds_text(end));
    json_.begin_array("attributes");
  }
  void close() {
    json_.end_array();
    json_.end_object();
  }
  void phase(std::string_view name, TimePoint begin, TimePoint end) {
    open(name, kInternal, random_hex(16), root_, begin, end);
    close();
  }

  void write_root(TimePoint end) {
    const std::string_view operation = operation_of(record_);
    open(std::string(operation) + ' ' + record_.model, kServer, root_, record_.trace.parent, record_.began, end);
    text_attribute(json_, "gen_ai.operation.name", operation);
    text_attribute(json_, "gen_ai.provider.name", "chasqui");
    text_attribute(json_, "gen_ai.request.model", record_.model);
    text_attribute(json_, "gen_ai.response.model", record_.model);
    text_attribute(json_, "http.route", record_.route);
    number_attribute(json_, "http.response.status_code", record_.status());
    text_attribute(json_, "chasqui.class", name(record_.service_class));
    if (record_.finished) write_receipt();
    if (!record_.error.empty()) text_attribute(json_, "error.type", record_.error);
    json_.end_array();
    if (!record_.error.empty()) {
      json_.begin_object("status");
      json_.field("code", kStatusError);
      json_.field("message", record_.error);
      json_.end_object();
    }
    json_.end_object();
  }

  void write_receipt() {
    const Usage& usage = record_.usage;
    number_attribute(json_, "chasqui.request", static_cast<std::int64_t>(record_.id.value));
    number_attribute(json_, "gen_ai.usage.input_tokens", usage.prompt);
    number_attribute(json_, "gen_ai.usage.output_tokens", usage.completion);
    number_attribute(json_, "gen_ai.usage.cache_read.input_tokens", usage.cached);
    seconds_attribute(json_, "gen_ai.server.time_to_first_token", usage.queue + usage.prefill);
    json_.begin_object();
    json_.field("key", "gen_ai.response.finish_reasons");
    json_.key("value");
    json_.raw("{\"arrayValue\":{\"values\":[{\"stringValue\":\"" + std::string(name(record_.reason)) + "\"}]}}");
    json_.end_object();
    number_attribute(json_, "chasqui.steps", usage.steps);
    number_attribute(json_, "chasqui.steps_shared", usage.shared);
    number_attribute(json_, "chasqui.preemptions", usage.preemptions);
    seconds_attribute(json_, "chasqui.cpu_time", usage.cpu);
    number_attribute(json_, "chasqui.draft_tokens", usage.draft_tokens);
    number_attribute(json_, "chasqui.accepted_tokens", usage.accepted_tokens);
    number_attribute(json_, "chasqui.forced_tokens", usage.forced_tokens);
  }

  void write_prefill(TimePoint begin, TimePoint end) {
    const std::string id = random_hex(16);
    open("prefill", kInternal, id, root_, begin, end);
    number_attribute(json_, "chasqui.tokens", record_.usage.prompt - record_.usage.cached);
    close();
    for (const PrefillChunk& chunk : record_.chunks) {
      open("chunk", kInternal, random_hex(16), id, record_.arrival + chunk.begin, record_.arrival + chunk.end);
      number_attribute(json_, "chasqui.tokens", chunk.tokens);
      close();
    }
  }

  std::string nanoseconds_text(TimePoint at) const {
    return std::to_string(std::chrono::nanoseconds(at.time_since_epoch()).count() + source_.unix_zero);
  }

  JsonWriter& json_;
  const RequestRecord& record_;
  const SpanSource& source_;
  const std::string root_;
};

}  // namespace

std::string spans_json(const std::vector<std::shared_ptr<RequestRecord>>& records, const SpanSource& source) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("resourceSpans");
  json.begin_object();
  json.begin_object("resource");
  json.begin_array("attributes");
  text_attribute(json, "service.name", "chasqui");
  text_attribute(json, "service.version", source.version);
  json.end_array();
  json.end_object();
  json.begin_array("scopeSpans");
  json.begin_object();
  json.begin_object("scope");
  json.field("name", "chasqui");
  json.field("version", source.version);
  json.end_object();
  json.begin_array("spans");
  for (const auto& record : records) SpanTree(json, *record, source).write();
  json.end_array();
  json.end_object();
  json.end_array();
  json.end_object();
  json.end_array();
  json.end_object();
  return out;
}

}  // namespace chasqui
