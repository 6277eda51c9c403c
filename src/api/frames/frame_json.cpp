#include "api/frames/frame_json.h"

#include <utility>

#include "api/body/fields.h"
#include "api/core/model_table.h"
#include "api/openai/openai_json.h"
#include "base/json_writer.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kIdBytesMax = kSizeLimit<"frame_id_bytes">;
constexpr std::size_t kMetadataBytesMax = kSizeLimit<"frame_metadata_bytes">;
constexpr std::string_view kNoId = "null";

// Its length is known when it is written: room first, the number at the end.
class OpenFrame {
 public:
  explicit OpenFrame(std::string& out) : out_(out), start_(out.size()) { out_.append(kLengthBytes, '\0'); }
  ~OpenFrame() {
    std::size_t length = out_.size() - start_ - kLengthBytes;
    for (std::size_t i = 0; i < kLengthBytes; ++i, length >>= 8) out_[start_ + i] = static_cast<char>(length & 0xff);
  }
  OpenFrame(const OpenFrame&) = delete;
  OpenFrame& operator=(const OpenFrame&) = delete;

 private:
  std::string& out_;
  const std::size_t start_;
};

// As JSON; empty when there is none.
std::string read_id(Fields& fields) {
  constexpr std::string_view kAllowed = "a string of 1 to 128 bytes or a whole number";
  const json::value* id = fields.any("id");
  if (id != nullptr && id->is_string() && !id->get_string().empty() && id->get_string().size() <= kIdBytesMax) {
    std::string out;
    append_json_string(out, id->get_string());
    return out;
  }
  if (id != nullptr && (id->is_int64() || id->is_uint64())) return json::serialize(*id);
  fields.refuse("id", kAllowed);
  return {};
}

// An id of a session that is too long for any is cut, and stays so: it is not found, at the length that it has then.
std::string read_session_id(Fields& fields, std::string_view name) {
  return std::string(fields.string(name).value_or("").substr(0, kSizeLimit<"named_id_bytes"> + 1));
}

// A frame has one answer.
void refuse_several(Fields& fields) {
  for (const std::string_view name : {"n", "n_cmpl", "best_of"}) {
    if (fields.integer(name).value_or(1) != 1) fields.refuse(name, "1: several answers are several requests");
  }
  const json::value* prompt = fields.any("prompt");
  const json::array* tokens = prompt != nullptr ? prompt->if_array() : nullptr;
  if (tokens != nullptr && !tokens->empty() && !tokens->front().is_number()) {
    fields.refuse("prompt", "a string or an array of token ids");
  }
}

void read_metadata(Fields& fields, FrameHead& head) {
  const json::object* metadata = fields.object("metadata");
  if (metadata == nullptr) return;
  head.metadata = json::serialize(*metadata);
  if (head.metadata.size() > kMetadataBytesMax) {
    fields.refuse("metadata", "at most " + std::to_string(kMetadataBytesMax) + " bytes of JSON");
  }
}

void read_list_fields(Fields& fields, FrameHead& head) {
  if (const auto limit = fields.integer("limit")) {
    head.limit = std::to_string(*limit);
    head.has_limit = true;
  }
  head.has_after = fields.string("after").has_value();
  head.after = read_session_id(fields, "after");
}

void write_end(JsonWriter& out, std::string_view reason, const std::string& stop_string, const Usage& usage) {
  out.field("reason", reason);
  if (!stop_string.empty()) out.field("stop_string", stop_string);
  out.key("usage");
  write_usage(out, usage);
  out.key("timings");
  write_timings(out, usage);
}

class FrameWriter final : public AnswerWriter {
 public:
  explicit FrameWriter(const FrameHead& head)
      : id_(head.id),
        metadata_(head.metadata),
        token_open_("{\"id\":" + head.id + ",\"event\":\"token\",\"text\":\"") {}

  // Every token costs this: a copy of the prepared beginning, the text, a number.
  void text(const Event& event, std::string& out) override {
    const OpenFrame frame(out);
    out += token_open_;
    append_json_escaped(out, event.text);
    out += "\",\"token_id\":";
    append_json_number(out, static_cast<std::int64_t>(event.token));
    out += '}';
  }

  void end(const Event& event, std::string& out) override { write(event, nullptr, out); }

  std::string whole(const std::vector<Collected>& answers) override {
    std::string out;
    write(answers.front().finished, &answers.front().text, out);
    return out;
  }

 private:
  void write(const Event& event, const std::string* text, std::string& out) const {
    const OpenFrame frame(out);
    JsonWriter json_out(out);
    json_out.begin_object();
    json_out.raw("id", id_);
    json_out.field("event", "eos");
    if (text != nullptr) json_out.field("text", *text);
    write_end(json_out, name(event.reason), event.stop_string, event.usage);
    if (!metadata_.empty()) {
      json_out.raw("metadata", metadata_);
    }
    json_out.end_object();
  }

  const std::string id_;
  const std::string metadata_;
  const std::string token_open_;
};

class LineWriter final : public AnswerWriter {
 public:
  void text(const Event& event, std::string& out) override { out += event.text; }
  void end(const Event&, std::string& out) override { out += '\n'; }
  std::string whole(const std::vector<Collected>& answers) override { return answers.front().text + '\n'; }
};

}  // namespace

FrameHead read_frame_head(std::string_view body) {
  FrameHead head;
  head.id = kNoId;
  auto object = parse_json_object(body);
  if (!object) {
    head.error = object.error();
    return head;
  }
  Fields fields(*object);
  if (std::string id = read_id(fields); !id.empty()) head.id = std::move(id);
  head.event = fields.string("event").value_or("");
  head.session = read_session_id(fields, "session");
  const std::string_view model = head.event == "props" ? fields.string("model").value_or("") : "";
  if (!may_name_model(model)) {
    fields.refuse(no_model_of_long_name());
  } else {
    head.model = model;
  }
  head.stream = fields.boolean("stream").value_or(true);
  head.chat = fields.any("messages") != nullptr;
  if (head.event.empty() && head.chat && fields.any("prompt") != nullptr) {
    fields.refuse("prompt", "left out beside messages");
  }
  head.traceparent = fields.string("traceparent").value_or("");
  head.tracestate = fields.string("tracestate").value_or("");
  refuse_several(fields);
  read_metadata(fields, head);
  read_list_fields(fields, head);
  if (!fields.ok()) head.error = fields.error();
  return head;
}

void append_error_frame(std::string& out, std::string_view id, const Error& error) {
  const OpenFrame frame(out);
  JsonWriter json_out(out);
  json_out.begin_object();
  json_out.raw("id", id);
  json_out.field("event", "error");
  json_out.field("code", name(error.code));
  json_out.field("message", error.message);
  if (!error.field.empty()) json_out.field("param", error.field);
  if (error.retry_after > Duration::zero()) {
    json_out.field("retry_after_ms", std::chrono::ceil<milliseconds>(error.retry_after).count());
  }
  json_out.end_object();
}

void append_result_frame(std::string& out, std::string_view id, std::string_view json_text) {
  const OpenFrame frame(out);
  JsonWriter json_out(out);
  json_out.begin_object();
  json_out.raw("id", id);
  json_out.field("event", "result");
  json_out.raw("result", json_text);
  json_out.end_object();
}

std::string body_of_line(std::string_view line, bool chat) {
  std::string body;
  JsonWriter json_out(body);
  json_out.begin_object();
  if (chat) {
    json_out.begin_array("messages");
    json_out.begin_object();
    json_out.field("role", "user");
    json_out.field("content", line);
    json_out.end_object();
    json_out.end_array();
  } else {
    json_out.field("prompt", line);
  }
  json_out.end_object();
  return body;
}

void append_queued_frame(std::string& out, std::string_view id, const Event& queued) {
  const OpenFrame frame(out);
  JsonWriter json_out(out);
  json_out.begin_object();
  json_out.raw("id", id);
  json_out.field("event", "queued");
  json_out.field("position", queued.position);
  if (queued.wait > Duration::zero()) json_out.field("wait_s", to_seconds(queued.wait));
  json_out.end_object();
}

void append_cancelled_frame(std::string& out, const FrameHead& head) {
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = FinishReason::cancelled;
  FrameWriter(head).end(event, out);
}

std::unique_ptr<AnswerWriter> make_frame_writer(const FrameHead& head) { return std::make_unique<FrameWriter>(head); }

std::unique_ptr<AnswerWriter> make_line_writer() { return std::make_unique<LineWriter>(); }

}  // namespace chasqui
