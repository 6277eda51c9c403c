#include <boost/json.hpp>

#include "api/anthropic/anthropic.h"
#include "api/core/answer_reader.h"
#include "api/core/errors.h"
#include "api/openai/openai_json.h"
#include "base/json_writer.h"
#include "net/sse.h"

namespace chasqui {
namespace {

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

// What was cached was not read, and so is no input in this dialect.
void write_usage_of(JsonWriter& json, TokenCount prompt, TokenCount cached, TokenCount output) {
  json.begin_object();
  json.field("input_tokens", prompt - cached);
  json.field("cache_creation_input_tokens", 0);
  json.field("cache_read_input_tokens", cached);
  json.field("output_tokens", output);
  json.end_object();
}

class MessageWriter final : public AnswerWriter {
 public:
  MessageWriter(std::string id, std::string model, TokenCount prompt, AnswerFormatPtr format)
      : id_(std::move(id)), model_(std::move(model)), prompt_(prompt), reader_(std::move(format)) {}

  void text(const Event& event, std::string& out) override {
    open(out);
    for (const AnswerDelta& delta : reader_.read(event)) write_delta(delta, out);
  }

  void end(const Event& event, std::string& out) override {
    text(event, out);
    close_block(out);
    std::string frame;
    JsonWriter json(frame);
    json.begin_object();
    json.field("type", "message_delta");
    json.begin_object("delta");
    write_stop(json, event);
    json.end_object();
    json.key("usage");
    write_usage_of(json, event.usage.prompt, event.usage.cached, event.usage.completion);
    json.key("timings");
    write_timings(json, event.usage);
    json.end_object();
    net::append_sse_event(out, frame, "message_delta");
    net::append_sse_event(out, R"({"type":"message_stop"})", "message_stop");
  }

  // In a ping, which this dialect's clients pass over.
  void progress(const Event& event, std::string& out) override {
    open(out);
    std::string frame;
    JsonWriter json(frame);
    json.begin_object();
    json.field("type", "ping");
    json.key("prompt_progress");
    write_prompt_progress(json, event);
    json.end_object();
    net::append_sse_event(out, frame, "ping");
  }

  void fail(const Error& error, std::string& out) override {
    net::append_sse_event(out, anthropic_error_body(error), "error");
  }

  void hear(const Event& event) override { reader_.read(event); }
  void ping(std::string& out) override { net::append_sse_event(out, R"({"type":"ping"})", "ping"); }

  std::string whole(const std::vector<Collected>& answers) override {
    const Event& finished = answers.front().finished;
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    write_head(json);
    json.key("content");
    write_content(json);
    write_stop(json, finished);
    json.key("usage");
    write_usage_of(json, finished.usage.prompt, finished.usage.cached, finished.usage.completion);
    json.key("timings");
    write_timings(json, finished.usage);
    json.end_object();
    return out;
  }

 private:
  enum class Block { none, text, thinking, call };

  void write_head(JsonWriter& json) const {
    json.field("id", id_);
    json.field("type", "message");
    json.field("role", "assistant");
    json.field("model", model_);
  }

  void write_stop(JsonWriter& json, const Event& event) const {
    const bool called = event.reason == FinishReason::stop && !reader_.calls().empty();
    const bool stopped = event.reason == FinishReason::stop && !event.stop_string.empty() && !called;
    json.key("stop_reason");
    if (event.reason != FinishReason::stop) {
      json.string("max_tokens");
    } else {
      json.string(called ? "tool_use" : stopped ? "stop_sequence" : "end_turn");
    }
    json.key("stop_sequence");
    if (stopped) {
      json.string(event.stop_string);
    } else {
      json.null();
    }
  }

  void write_content(JsonWriter& json) const {
    json.begin_array();
    if (!reader_.reasoning().empty()) {
      json.begin_object();
      json.field("type", "thinking");
      json.field("thinking", reader_.reasoning());
      json.field("signature", "");
      json.end_object();
    }
    const bool says = reader_.content().find_first_not_of(" \n\r\t") != std::string::npos;
    if (says || (reader_.calls().empty() && !reader_.content().empty())) {
      json.begin_object();
      json.field("type", "text");
      json.field("text", reader_.content());
      json.end_object();
    }
    for (const SpokenCall& call : reader_.calls()) {
      boost::json::error_code failed;
      const boost::json::value input = boost::json::parse(call.arguments, failed);
      json.begin_object();
      json.field("type", "tool_use");
      json.field("id", call.id);
      json.field("name", call.name);
      json.raw("input",
               !failed && input.is_object() ? call.arguments : "{}");  // arguments that were cut short are none
      json.end_object();
    }
    json.end_array();
  }

  void open(std::string& out) {
    if (opened_) return;
    opened_ = true;
    std::string frame;
    JsonWriter json(frame);
    json.begin_object();
    json.field("type", "message_start");
    json.begin_object("message");
    write_head(json);
    json.begin_array("content");
    json.end_array();
    json.null("stop_reason");
    json.null("stop_sequence");
    json.key("usage");
    write_usage_of(json, prompt_, 0, 0);
    json.end_object();
    json.end_object();
    net::append_sse_event(out, frame, "message_start");
    ping(out);
  }

  void write_delta(const AnswerDelta& delta, std::string& out) {
    switch (delta.kind) {
      case AnswerDelta::Kind::content: return write_text(delta.text, out);
      case AnswerDelta::Kind::reasoning:
        open_block(Block::thinking, R"({"type":"thinking","thinking":"","signature":""})", out);
        return write_piece("thinking_delta", "thinking", delta.text, out);
      case AnswerDelta::Kind::call_begin: {
        close_block(out);
        std::string call = "{\"type\":\"tool_use\",\"id\":";
        append_json_string(call, delta.id);
        call += ",\"name\":";
        append_json_string(call, delta.name);
        call += ",\"input\":{}}";
        return open_block(Block::call, call, out);
      }
      case AnswerDelta::Kind::call_arguments: return write_piece("input_json_delta", "partial_json", delta.text, out);
    }
  }

  // Space between the parts of an answer is no block: clients may not send one back.
  void write_text(const std::string& text, std::string& out) {
    if (block_ != Block::text && text.find_first_not_of(" \n\r\t") == std::string::npos) {
      space_ += text;
      return;
    }
    open_block(Block::text, R"({"type":"text","text":""})", out);
    write_piece("text_delta", "text", space_ + text, out);
    space_.clear();
  }

  void open_block(Block block, std::string_view begin, std::string& out) {
    if (block_ == block) return;
    close_block(out);
    block_ = block;
    std::string frame = "{\"type\":\"content_block_start\",\"index\":" + std::to_string(index_) + ",\"content_block\":";
    frame += begin;
    frame += '}';
    net::append_sse_event(out, frame, "content_block_start");
  }

  void close_block(std::string& out) {
    space_.clear();
    if (block_ == Block::none) return;
    if (block_ == Block::thinking) write_piece("signature_delta", "signature", "", out);
    const std::string frame = "{\"type\":\"content_block_stop\",\"index\":" + std::to_string(index_) + "}";
    net::append_sse_event(out, frame, "content_block_stop");
    block_ = Block::none;
    ++index_;
  }

  void write_piece(std::string_view type, std::string_view key, std::string_view text, std::string& out) {
    frame_.clear();
    frame_ += "{\"type\":\"content_block_delta\",\"index\":";
    append_json_number(frame_, static_cast<std::uint64_t>(index_));
    frame_ += ",\"delta\":{\"type\":\"";
    frame_ += type;
    frame_ += "\",\"";
    frame_ += key;
    frame_ += "\":";
    append_json_string(frame_, text);
    frame_ += "}}";
    net::append_sse_event(out, frame_, "content_block_delta");
  }

  const std::string id_;
  const std::string model_;
  const TokenCount prompt_;
  AnswerReader reader_;
  std::string frame_;
  std::string space_;  // held back until something follows
  Block block_ = Block::none;
  std::size_t index_ = 0;  // of the block
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_message_writer(std::string id, std::string model, TokenCount prompt,
                                                  AnswerFormatPtr format) {
  return std::make_unique<MessageWriter>(std::move(id), std::move(model), prompt, std::move(format));
}

const Dialect kAnthropic{"anthropic", "/v1/messages", &anthropic_error_body, &anthropic_error_body, true, "error"};

std::string anthropic_error_body(const Error& error) {
  const int status = error_row(error.code).status;
  if (error.context_tokens == 0) return anthropic_error_body(status, error.message);
  // In the words that clients of this dialect look for; one token is kept for the answer.
  return anthropic_error_body(status, "prompt is too long: " + std::to_string(error.prompt_tokens) + " tokens > " +
                                          std::to_string(error.context_tokens - 1) + " maximum");
}

std::string anthropic_error_body(int status, std::string_view message) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("type", "error");
  json.begin_object("error");
  json.field("type", error_type(status));
  json.field("message", message);
  json.end_object();
  json.end_object();
  return out;
}

}  // namespace chasqui
