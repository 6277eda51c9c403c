#include "api/chat_json.h"

#include "api/answer_reader.h"
#include "net/sse.h"

namespace chasqui {
namespace {

class PartsWriter final : public AnswerWriter {
 public:
  PartsWriter(AnswerHead head, AnswerFormatPtr format) : head_(std::move(head)), reader_(std::move(format)) {
    chunk_open_ = "data: ";
    JsonWriter json(chunk_open_);
    json.begin_object();
    write_head(json, "chat.completion.chunk");
    chunk_open_ += ",\"choices\":[{\"index\":0,\"delta\":";
  }

  void text(const Event& event, std::string& out) override {
    open(out);
    for (const AnswerDelta& delta : reader_.read(event)) write_delta(delta, out);
  }

  void end(const Event& event, std::string& out) override {
    text(event, out);
    out += chunk_open_;
    out += "{},\"finish_reason\":\"";
    out += finish_reason(event);
    out += "\"}],\"timings\":";
    JsonWriter timings(out);
    write_timings(timings, event.usage);
    out += "}\n\n";
    if (head_.include_usage) write_usage_chunk(event.usage, out);
    net::append_sse_data_line(out, "[DONE]");
  }

  void hear(const Event& event) override { reader_.read(event); }

  std::string whole(const std::string&, const Event& finished) override {
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    write_head(json, "chat.completion");
    json.key("choices");
    json.begin_array();
    json.begin_object();
    json.field("index", 0);
    json.key("message");
    write_message(json);
    json.field("finish_reason", finish_reason(finished));
    json.end_object();
    json.end_array();
    json.key("usage");
    write_usage(json, finished.usage);
    json.key("timings");
    write_timings(json, finished.usage);
    json.end_object();
    return out;
  }

 private:
  void write_head(JsonWriter& json, std::string_view object) const {
    json.field("id", head_.id);
    json.field("object", object);
    json.field("created", head_.created);
    json.field("model", head_.model);
    json.field("system_fingerprint", head_.fingerprint);
  }

  // A call whose arguments were cut short is none that a client could make.
  std::string_view finish_reason(const Event& event) const {
    const bool called = event.reason == FinishReason::stop && !reader_.calls().empty();
    return called ? "tool_calls" : openai_finish_reason(event.reason);
  }

  void open(std::string& out) {
    if (opened_) return;
    opened_ = true;
    out += chunk_open_;
    out += "{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n";
  }

  void write_delta(const AnswerDelta& delta, std::string& out) const {
    out += chunk_open_;
    switch (delta.kind) {
      case AnswerDelta::Kind::content: write_text("{\"content\":\"", delta.text, "\"}", out); break;
      case AnswerDelta::Kind::reasoning: write_text("{\"reasoning_content\":\"", delta.text, "\"}", out); break;
      case AnswerDelta::Kind::call_begin: write_call(delta, out); break;
      case AnswerDelta::Kind::call_arguments:
        out += "{\"tool_calls\":[{\"index\":";
        append_json_number(out, static_cast<std::uint64_t>(delta.call));
        write_text(",\"function\":{\"arguments\":\"", delta.text, "\"}}]}", out);
        break;
    }
    out += ",\"finish_reason\":null}]}\n\n";
  }

  static void write_text(std::string_view before, std::string_view text, std::string_view behind, std::string& out) {
    out += before;
    append_json_escaped(out, text);
    out += behind;
  }

  static void write_call(const AnswerDelta& delta, std::string& out) {
    JsonWriter json(out);
    json.begin_object();
    json.key("tool_calls");
    json.begin_array();
    json.begin_object();
    json.field("index", delta.call);
    json.field("id", delta.id);
    json.field("type", "function");
    json.key("function");
    json.begin_object();
    json.field("name", delta.name);
    json.field("arguments", "");
    json.end_object();
    json.end_object();
    json.end_array();
    json.end_object();
  }

  void write_message(JsonWriter& json) const {
    json.begin_object();
    json.field("role", "assistant");
    json.key("content");
    if (reader_.content().empty() && !reader_.calls().empty()) {
      json.null();
    } else {
      json.string(reader_.content());
    }
    if (!reader_.reasoning().empty()) json.field("reasoning_content", reader_.reasoning());
    if (!reader_.calls().empty()) {
      json.key("tool_calls");
      json.begin_array();
      for (const SpokenCall& call : reader_.calls()) {
        json.begin_object();
        json.field("id", call.id);
        json.field("type", "function");
        json.key("function");
        json.begin_object();
        json.field("name", call.name);
        json.field("arguments", call.arguments);
        json.end_object();
        json.end_object();
      }
      json.end_array();
    }
    json.end_object();
  }

  void write_usage_chunk(const Usage& usage, std::string& out) const {
    out += "data: ";
    JsonWriter json(out);
    json.begin_object();
    write_head(json, "chat.completion.chunk");
    json.key("choices");
    json.begin_array();
    json.end_array();
    json.key("usage");
    write_usage(json, usage);
    json.end_object();
    out += "\n\n";
  }

  const AnswerHead head_;
  AnswerReader reader_;
  std::string chunk_open_;
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_parts_writer(AnswerHead head, AnswerFormatPtr format) {
  return std::make_unique<PartsWriter>(std::move(head), std::move(format));
}

}  // namespace chasqui
