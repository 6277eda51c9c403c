#include "api/openai/chat_json.h"

#include "api/core/answer_reader.h"
#include "api/openai/likelihoods.h"
#include "net/sse.h"

namespace chasqui {
namespace {

class PartsWriter final : public AnswerWriter {
 public:
  PartsWriter(AnswerHead head, AnswerFormatPtr format) : head_(std::move(head)) {
    for (std::int32_t i = 0; i < head_.n; ++i) choices_.emplace_back(std::make_unique<Choice>(format));
    chunk_open_ = "data: ";
    JsonWriter json(chunk_open_);
    json.begin_object();
    write_head(json, "chat.completion.chunk");
    chunk_open_ += ",\"choices\":[{\"index\":";
  }

  void text(const Event& event, std::string& out) override {
    Choice& choice = open(event, out);
    if (!event.chances.empty()) choice.untold.push_back(event.chances);
    choice.new_line = choice.new_line || (head_.verbose && event.text.find('\n') != std::string::npos);
    const std::span<const AnswerDelta> deltas = choice.reader.read(event);
    for (std::size_t i = 0; i < deltas.size(); ++i) {
      write_delta(event.choice, deltas[i], out);
      // What belongs to the token is told with the last that it made certain.
      const bool last = i + 1 == deltas.size() && event.kind == Event::Kind::text;
      if (last && tells()) write_logprobs(choice, choice.untold.size(), out);
      out += ",\"finish_reason\":null}]";
      if (last && event.usage.prompt > 0) {
        out += ",\"timings\":";
        JsonWriter timings(out);
        write_timings(timings, event.usage);
      }
      out += "}\n\n";
    }
  }

  void progress(const Event& event, std::string& out) override {
    open(event, out);
    begin_chunk(event.choice, out);
    out += "{},\"finish_reason\":null}],\"prompt_progress\":";
    JsonWriter json(out);
    write_prompt_progress(json, event);
    out += "}\n\n";
  }

  void end(const Event& event, std::string& out) override {
    text(event, out);
    Choice& choice = choice_of(event);
    begin_chunk(event.choice, out);
    out += "{}";
    const std::size_t told = tells() ? told_tokens(*head_.tokenizer, choice.untold, event, event.text.size()) : 0;
    if (told > 0) write_logprobs(choice, told, out);
    out += ",\"finish_reason\":\"";
    out += finish_reason(event, choice.reader);
    out += "\"}],\"timings\":";
    JsonWriter timings(out);
    write_timings(timings, event.usage);
    if (head_.verbose) {
      Collected rest;
      rest.finished = event;
      head_.verbose(rest, static_cast<std::size_t>(event.choice), choice.new_line, out);
    }
    out += "}\n\n";
    choice.usage = event.usage;
    if (++ended_ < choices_.size()) return;
    if (head_.include_usage) write_usage_chunk(out);
    net::append_sse_data_line(out, "[DONE]");
  }

  void hear(const Event& event) override { choice_of(event).reader.read(event); }

  std::string whole(const std::vector<Collected>& answers) override {
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    write_head(json, "chat.completion");
    json.begin_array("choices");
    for (std::size_t i = 0; i < answers.size(); ++i) {
      choices_[i]->usage = answers[i].finished.usage;
      json.begin_object();
      json.field("index", i);
      json.key("message");
      write_message(json, choices_[i]->reader);
      if (tells()) {
        const std::span<const TokenChances> all = answers[i].chances;
        json.key("logprobs");
        write_chat_logprobs(json, *head_.tokenizer,
                            all.first(told_tokens(*head_.tokenizer, all, answers[i].finished, answers[i].text.size())));
      }
      json.field("finish_reason", finish_reason(answers[i].finished, choices_[i]->reader));
      json.end_object();
    }
    json.end_array();
    json.key("usage");
    const std::vector<Usage> usages = usages_of_choices();
    write_usage(json, sum_usage(usages, usages.size()), reasoning_tokens());
    json.key("timings");
    write_timings(json, usages);
    const bool new_line = answers.front().text.find('\n') != std::string::npos;
    if (head_.verbose) head_.verbose(answers.front(), 0, new_line, out);
    json.end_object();
    return out;
  }

 private:
  struct Choice {
    explicit Choice(AnswerFormatPtr format) : reader(std::move(format)) {}
    AnswerReader reader;
    Usage usage;
    std::vector<TokenChances> untold;
    bool opened = false;
    bool new_line = false;  // in the answer; noted for `__verbose`
  };

  bool tells() const { return head_.tokenizer != nullptr; }

  void write_logprobs(Choice& choice, std::size_t told, std::string& out) const {
    out += ",\"logprobs\":";
    JsonWriter json(out);
    write_chat_logprobs(json, *head_.tokenizer, std::span<const TokenChances>(choice.untold).first(told));
    choice.untold.clear();
  }

  Choice& choice_of(const Event& event) { return *choices_[static_cast<std::size_t>(event.choice)]; }

  std::vector<Usage> usages_of_choices() const {
    std::vector<Usage> usages;
    for (const auto& choice : choices_) usages.push_back(choice->usage);
    return usages;
  }

  TokenCount reasoning_tokens() const {
    TokenCount sum = 0;
    for (const auto& choice : choices_) sum += choice->reader.reasoning_tokens();
    return sum;
  }

  void begin_chunk(std::int32_t index, std::string& out) const {
    out += chunk_open_;
    append_json_number(out, static_cast<std::int64_t>(index));
    out += ",\"delta\":";
  }

  void write_head(JsonWriter& json, std::string_view object) const {
    json.field("id", head_.id);
    json.field("object", object);
    json.field("created", head_.created);
    json.field("model", head_.model);
    json.field("system_fingerprint", head_.fingerprint);
  }

  // A call whose arguments were cut short is none that a client could make.
  static std::string_view finish_reason(const Event& event, const AnswerReader& reader) {
    const bool called = event.reason == FinishReason::stop && !reader.calls().empty();
    return called ? "tool_calls" : openai_finish_reason(event.reason);
  }

  Choice& open(const Event& event, std::string& out) {
    Choice& choice = choice_of(event);
    if (choice.opened) return choice;
    choice.opened = true;
    begin_chunk(event.choice, out);
    out += "{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n";
    return choice;
  }

  void write_delta(std::int32_t index, const AnswerDelta& delta, std::string& out) const {
    begin_chunk(index, out);
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
  }

  static void write_text(std::string_view before, std::string_view text, std::string_view behind, std::string& out) {
    out += before;
    append_json_escaped(out, text);
    out += behind;
  }

  static void write_call(const AnswerDelta& delta, std::string& out) {
    JsonWriter json(out);
    json.begin_object();
    json.begin_array("tool_calls");
    json.begin_object();
    json.field("index", delta.call);
    json.field("id", delta.id);
    json.field("type", "function");
    json.begin_object("function");
    json.field("name", delta.name);
    json.field("arguments", "");
    json.end_object();
    json.end_object();
    json.end_array();
    json.end_object();
  }

  static void write_message(JsonWriter& json, const AnswerReader& reader) {
    json.begin_object();
    json.field("role", "assistant");
    json.key("content");
    if (reader.content().empty() && !reader.calls().empty()) {
      json.null();
    } else {
      json.string(reader.content());
    }
    if (!reader.reasoning().empty()) json.field("reasoning_content", reader.reasoning());
    if (!reader.calls().empty()) {
      json.begin_array("tool_calls");
      for (const SpokenCall& call : reader.calls()) {
        json.begin_object();
        json.field("id", call.id);
        json.field("type", "function");
        json.begin_object("function");
        json.field("name", call.name);
        json.field("arguments", call.arguments);
        json.end_object();
        json.end_object();
      }
      json.end_array();
    }
    json.end_object();
  }

  void write_usage_chunk(std::string& out) const {
    out += "data: ";
    JsonWriter json(out);
    json.begin_object();
    write_head(json, "chat.completion.chunk");
    json.begin_array("choices");
    json.end_array();
    json.key("usage");
    const std::vector<Usage> usages = usages_of_choices();
    write_usage(json, sum_usage(usages, usages.size()), reasoning_tokens());
    json.key("timings");  // llama-server has them in the last chunk, whatever that is
    write_timings(json, usages);
    json.end_object();
    out += "\n\n";
  }

  const AnswerHead head_;
  std::string chunk_open_;
  std::vector<std::unique_ptr<Choice>> choices_;  // by Event::choice
  std::size_t ended_ = 0;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_parts_writer(AnswerHead head, AnswerFormatPtr format) {
  return std::make_unique<PartsWriter>(std::move(head), std::move(format));
}

}  // namespace chasqui
