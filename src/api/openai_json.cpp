#include "api/openai_json.h"

#include "net/sse.h"

namespace chasqui {
namespace {

constexpr std::string_view kDone = "[DONE]";

// Chat and text completions differ in a few words; everything else is written once.
struct Dialect {
  std::string_view chunk_object;
  std::string_view whole_object;
  std::string_view text_open;  // from the choice's index to the text of a chunk
  std::string_view text_close;
  std::string_view empty;  // what stands there when a chunk has no text
};

constexpr Dialect kChat = {"chat.completion.chunk", "chat.completion", "\"delta\":{\"content\":\"", "\"}",
                           "\"delta\":{}"};
constexpr Dialect kCompletion = {"text_completion", "text_completion", "\"text\":\"", "\",\"logprobs\":null",
                                 "\"text\":\"\",\"logprobs\":null"};

class OpenAiWriter final : public AnswerWriter {
 public:
  OpenAiWriter(AnswerHead head, const Dialect& dialect)
      : head_(std::move(head)), dialect_(dialect), chat_(&dialect == &kChat) {
    chunk_open_ = "data: ";
    JsonWriter json(chunk_open_);
    json.begin_object();
    write_head(json, dialect_.chunk_object);
    chunk_open_ += ",\"choices\":[{\"index\":0,";
  }

  void text(const Event& event, std::string& out) override {
    open(out);
    if (event.text.empty()) return;  // held back: part of a character, or of a stop string
    write_text_chunk(event.text, out);
  }

  void end(const Event& event, std::string& out) override {
    open(out);
    if (!event.text.empty()) write_text_chunk(event.text, out);
    out += chunk_open_;
    out += dialect_.empty;
    out += ",\"finish_reason\":\"";
    out += openai_finish_reason(event.reason);
    out += "\"}],\"timings\":";
    JsonWriter timings(out);
    write_timings(timings, event.usage);
    out += "}\n\n";
    if (head_.include_usage) write_usage_chunk(event.usage, out);
    net::append_sse_data_line(out, kDone);
  }

  std::string whole(const std::string& text, const Event& finished) override {
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    write_head(json, dialect_.whole_object);
    json.key("choices");
    json.begin_array();
    json.begin_object();
    json.field("index", 0);
    if (chat_) {
      json.key("message");
      json.begin_object();
      json.field("role", "assistant");
      json.field("content", text);
      json.end_object();
    } else {
      json.field("text", text);
      json.key("logprobs");
      json.null();
    }
    json.field("finish_reason", openai_finish_reason(finished.reason));
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

  // The first chunk of a chat names the role.
  void open(std::string& out) {
    if (opened_) return;
    opened_ = true;
    if (!chat_) return;
    out += chunk_open_;
    out += "\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n";
  }

  void write_text_chunk(std::string_view text, std::string& out) const {
    out += chunk_open_;
    out += dialect_.text_open;
    append_json_escaped(out, text);
    out += dialect_.text_close;
    out += ",\"finish_reason\":null}]}\n\n";
  }

  void write_usage_chunk(const Usage& usage, std::string& out) const {
    out += "data: ";
    JsonWriter json(out);
    json.begin_object();
    write_head(json, dialect_.chunk_object);
    json.key("choices");
    json.begin_array();
    json.end_array();
    json.key("usage");
    write_usage(json, usage);
    json.end_object();
    out += "\n\n";
  }

  const AnswerHead head_;
  const Dialect& dialect_;
  const bool chat_;
  std::string chunk_open_;
  bool opened_ = false;
};

}  // namespace

std::string_view openai_finish_reason(FinishReason reason) {
  if (reason == FinishReason::cancelled) return "cancelled";
  return reason == FinishReason::stop ? "stop" : "length";
}

void write_usage(JsonWriter& json, const Usage& usage) {
  json.begin_object();
  json.field("prompt_tokens", usage.prompt);
  json.field("completion_tokens", usage.completion);
  json.field("total_tokens", usage.prompt + usage.completion);
  json.key("prompt_tokens_details");
  json.begin_object();
  json.field("cached_tokens", usage.cached);
  json.end_object();
  json.end_object();
}

void write_timings(JsonWriter& json, const Usage& usage) {
  const TokenCount prompt = usage.prompt - usage.cached;
  const double prompt_ms = to_milliseconds(usage.prefill);
  // The first token is the prefill's; the decode phase has made the others.
  const TokenCount predicted = usage.completion;
  const double predicted_ms = to_milliseconds(usage.decode);
  const auto per = [](double total, double parts) { return parts > 0 ? total / parts : 0.0; };
  json.begin_object();
  json.field("cache_n", usage.cached);
  json.field("prompt_n", prompt);
  json.field("prompt_ms", prompt_ms);
  json.field("prompt_per_token_ms", per(prompt_ms, prompt));
  json.field("prompt_per_second", per(1000.0 * prompt, prompt_ms));
  json.field("predicted_n", predicted);
  json.field("predicted_ms", predicted_ms);
  json.field("predicted_per_token_ms", per(predicted_ms, predicted - 1));
  json.field("predicted_per_second", predicted > 1 ? per(1000.0 * (predicted - 1), predicted_ms) : 0.0);
  json.field("queue_ms", to_milliseconds(usage.queue));
  json.field("steps", usage.steps);
  json.field("steps_shared", usage.shared);
  json.field("preemptions", usage.preemptions);
  json.end_object();
}

std::unique_ptr<AnswerWriter> make_chat_writer(AnswerHead head) {
  return std::make_unique<OpenAiWriter>(std::move(head), kChat);
}

std::unique_ptr<AnswerWriter> make_completion_writer(AnswerHead head) {
  return std::make_unique<OpenAiWriter>(std::move(head), kCompletion);
}

}  // namespace chasqui
