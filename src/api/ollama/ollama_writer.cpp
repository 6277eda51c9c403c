#include <boost/json.hpp>

#include "api/core/answer_reader.h"
#include "api/core/errors.h"
#include "api/ollama/ollama.h"
#include "api/openai/likelihoods.h"
#include "api/openai/openai_json.h"

namespace chasqui {
namespace {

std::int64_t nanoseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

// The parts of an answer, or of a piece of one, that a line tells.
struct LineOfAnswer {
  std::string content;
  std::string thinking;
  std::vector<SpokenCall> calls;  // whole ones only: this dialect has no pieces of arguments

  bool nothing() const { return content.empty() && thinking.empty() && calls.empty(); }
};

void write_calls(JsonWriter& json, const std::vector<SpokenCall>& calls) {
  json.begin_array();
  for (const SpokenCall& call : calls) {
    boost::json::error_code failed;
    const boost::json::value arguments = boost::json::parse(call.arguments, failed);
    json.begin_object();
    json.field("id", call.id);
    json.begin_object("function");
    json.field("name", call.name);
    // Arguments that were cut short are none. Between their parts a model may write line breaks, which would end the
    // line of the stream; inside of texts they are escaped.
    std::string written = !failed && arguments.is_object() ? call.arguments : "{}";
    std::erase_if(written, [](char c) { return static_cast<unsigned char>(c) < ' '; });
    json.raw("arguments", written);
    json.end_object();
    json.end_object();
  }
  json.end_array();
}

void write_said(JsonWriter& json, OllamaShape shape, const LineOfAnswer& said) {
  if (shape == OllamaShape::generate) {
    json.field("response", said.content);
    if (!said.thinking.empty()) json.field("thinking", said.thinking);
    return;
  }
  json.begin_object("message");
  json.field("role", "assistant");
  json.field("content", said.content);
  if (!said.thinking.empty()) json.field("thinking", said.thinking);
  if (!said.calls.empty()) {
    json.key("tool_calls");
    write_calls(json, said.calls);
  }
  json.end_object();
}

void write_figures(JsonWriter& json, const Usage& usage) {
  json.field("total_duration", nanoseconds(usage.queue + usage.prefill + usage.decode));
  json.field("load_duration", 0);  // it is always loaded
  json.field("prompt_eval_count", usage.prompt);
  json.field("prompt_eval_duration", nanoseconds(usage.prefill));
  json.field("eval_count", usage.completion);
  json.field("eval_duration", nanoseconds(usage.decode));
  json.key("timings");
  write_timings(json, usage);
}

class OllamaWriter final : public AnswerWriter {
 public:
  OllamaWriter(OllamaHead head, AnswerFormatPtr format) : head_(std::move(head)), reader_(std::move(format)) {
    JsonWriter json(open_);
    json.begin_object();
    json.field("model", head_.model);
    json.field("created_at", head_.created_at);
  }

  net::HttpHeaders headers() const override {
    net::HttpHeaders headers;
    headers.add("Content-Type", "application/x-ndjson");
    headers.add("Cache-Control", "no-cache");
    headers.add("X-Accel-Buffering", "no");
    return headers;
  }
  bool has_comments() const override { return false; }

  void text(const Event& event, std::string& out) override {
    note_chances(event);
    read(event);
    if (!said_.nothing()) write_line(nullptr, out);
  }

  void end(const Event& event, std::string& out) override {
    read(event);
    take_call(reader_.calls().size());
    if (head_.tokenizer != nullptr) untold_.resize(told_tokens(*head_.tokenizer, untold_, event, event.text.size()));
    // Clients may take the last line for figures only.
    if (!said_.nothing() || !untold_.empty()) write_line(nullptr, out);
    write_line(&event, out);
  }

  void fail(const Error& error, std::string& out) override {
    out += ollama_error_body(error.message);
    out += '\n';
  }

  void hear(const Event& event) override {
    note_chances(event);
    reader_.read(event);
    bytes_ += event.text.size();
  }

  std::string whole(const std::vector<Collected>& answers) override {
    const Event& finished = answers.front().finished;
    if (head_.tokenizer != nullptr) untold_.resize(told_tokens(*head_.tokenizer, untold_, finished, bytes_));
    said_ = {reader_.content(), reader_.reasoning(), reader_.calls()};
    std::string out;
    write_line(&finished, out);
    return out;
  }

 private:
  void note_chances(const Event& event) {
    if (head_.tokenizer != nullptr && !event.chances.empty()) untold_.push_back(event.chances);
  }

  // A call is whole when something else begins.
  void read(const Event& event) {
    for (const AnswerDelta& delta : reader_.read(event)) {
      switch (delta.kind) {
        case AnswerDelta::Kind::content: said_.content += delta.text; break;
        case AnswerDelta::Kind::reasoning: said_.thinking += delta.text; break;
        case AnswerDelta::Kind::call_begin: take_call(delta.call); break;
        case AnswerDelta::Kind::call_arguments: break;
      }
    }
  }

  // Those before `end`.
  void take_call(std::size_t end) {
    for (; told_ < end && told_ < reader_.calls().size(); ++told_) said_.calls.push_back(reader_.calls()[told_]);
  }

  // `finished`: of the last line.
  void write_line(const Event* finished, std::string& out) {
    out += open_;
    line_.clear();
    JsonWriter json(line_);
    json.begin_object();
    write_said(json, head_.shape, said_);
    if (!untold_.empty()) {
      json.key("logprobs");
      write_logprob_list(json, *head_.tokenizer, untold_);
      untold_.clear();
    }
    json.field("done", finished != nullptr);
    if (finished != nullptr) {
      json.field("done_reason", openai_finish_reason(finished->reason));
      write_figures(json, finished->usage);
      if (head_.context != nullptr) write_context(json, *finished);
    }
    json.end_object();
    out += ',';
    out.append(line_, 1);  // what the line begins with is in open_
    out += '\n';
    said_ = {};
  }

  // What a client sends back to go on with the text.
  void write_context(JsonWriter& json, const Event& finished) const {
    json.begin_array("context");
    for (const Token token : head_.context->prompt) json.number(token);
    for (const Token token : finished.generated) json.number(token);
    json.end_array();
  }

  const OllamaHead head_;
  AnswerReader reader_;
  std::vector<TokenChances> untold_;
  std::size_t bytes_ = 0;  // of the text of an answer that is told as a whole
  std::string open_;       // every line begins so
  std::string line_;
  LineOfAnswer said_;     // not told yet
  std::size_t told_ = 0;  // calls
};

}  // namespace

std::unique_ptr<AnswerWriter> make_ollama_writer(OllamaHead head, AnswerFormatPtr format) {
  return std::make_unique<OllamaWriter>(std::move(head), std::move(format));
}

std::string ollama_loaded(OllamaShape shape, std::string_view model, std::string_view created_at, bool unload) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("model", model);
  json.field("created_at", created_at);
  write_said(json, shape, {});
  json.field("done", true);
  json.field("done_reason", unload ? "unload" : "load");
  for (const std::string_view name : {"total_duration", "load_duration"}) json.field(name, 0);
  json.end_object();
  return out + '\n';
}

const Dialect kOllama{"ollama", "/api", [](const Error& error) { return ollama_error_body(error.message); },
                      [](int, std::string_view message) { return ollama_error_body(message); }, false};

std::string ollama_error_body(std::string_view message) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("error", message);
  json.end_object();
  return out;
}

}  // namespace chasqui
