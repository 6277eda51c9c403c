#include "api/openai/openai_json.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "api/core/cache_use_json.h"
#include "api/openai/likelihoods.h"
#include "net/sse.h"

namespace chasqui {
namespace {

constexpr std::string_view kDone = "[DONE]";

// Chat and text completions differ in a few words; everything else is written once.
struct ObjectWords {
  std::string_view chunk_object;
  std::string_view whole_object;
  std::string_view text_open;  // from the choice's index to the text of a chunk
  std::string_view text_close;
  std::string_view empty;  // what stands there when a chunk has no text
};

constexpr ObjectWords kChat = {"chat.completion.chunk", "chat.completion", "\"delta\":{\"content\":\"", "\"}",
                               "\"delta\":{}"};
constexpr ObjectWords kCompletion = {"text_completion", "text_completion", "\"text\":\"", "\"", "\"text\":\"\""};

// How likely an answer is for each of its tokens, which is what best_of goes by.
double likelihood(const Collected& answer) {
  double sum = 0;
  for (const TokenChances& chances : answer.chances) sum += chances.front().logprob;
  return answer.chances.empty() ? 0 : sum / static_cast<double>(answer.chances.size());
}

class OpenAiWriter final : public AnswerWriter {
 public:
  OpenAiWriter(AnswerHead head, const ObjectWords& words)
      : head_(std::move(head)), words_(words), chat_(&words == &kChat) {
    chunk_open_ = "data: ";
    JsonWriter json(chunk_open_);
    json.begin_object();
    write_head(json, words_.chunk_object);
    chunk_open_ += ",\"choices\":[{\"index\":";
    choices_.resize(static_cast<std::size_t>(head_.prompts * head_.n));
  }

  void prompt(const Event& event, std::string&) override {
    Choice& choice = choices_[static_cast<std::size_t>(event.choice)];
    choice.prompt.insert(choice.prompt.end(), event.prompt_chances.begin(), event.prompt_chances.end());
  }

  void text(const Event& event, std::string& out) override {
    Choice& choice = open(event, out);
    echo(event, choice, out);
    if (!event.chances.empty()) choice.untold.push_back(event.chances);
    if (event.text.empty()) return;  // held back: part of a character, or of a stop string
    choice.new_line = choice.new_line || (head_.verbose && event.text.find('\n') != std::string::npos);
    write_text_chunk(event, event.text, choice, choice.untold.size(), out);
  }

  void progress(const Event& event, std::string& out) override {
    open(event, out);
    begin_chunk(event.choice, out);
    out += words_.text_open;
    out += words_.text_close;
    out += ",\"finish_reason\":null}],\"prompt_progress\":";
    JsonWriter json(out);
    write_prompt_progress(json, event);
    out += "}\n\n";
  }

  void end(const Event& event, std::string& out) override {
    Choice& choice = open(event, out);
    echo(event, choice, out);
    const std::size_t told = tells() ? told_tokens(*head_.tokenizer, choice.untold, event, event.text.size()) : 0;
    if (!event.text.empty() || told > 0) write_text_chunk(event, event.text, choice, told, out);
    begin_chunk(event.choice, out);
    out += words_.empty;
    if (!chat_) out += ",\"logprobs\":null";
    out += ",\"finish_reason\":\"";
    out += openai_finish_reason(event.reason);
    out += "\"}]";
    if (!chat_) {  // as llama-server, asked for or not
      out += ",\"usage\":";
      JsonWriter usage(out);
      write_usage(usage, event.usage);
    }
    out += ",\"timings\":";
    JsonWriter timings(out);
    write_timings(timings, event.usage);
    if (head_.verbose) {
      choice.new_line = choice.new_line || event.text.find('\n') != std::string::npos;
      Collected rest;
      rest.finished = event;
      head_.verbose(rest, static_cast<std::size_t>(event.choice), choice.new_line, out);
    }
    out += "}\n\n";
    choice.usage = event.usage;
    if (++ended_ < choices_.size()) return;
    if (head_.include_usage) write_usage_chunk(out);
    net::append_sse_data_line(out, kDone);
  }

  std::string whole(const std::vector<Collected>& answers) override {
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    write_head(json, words_.whole_object);
    json.begin_array("choices");
    const auto made = static_cast<std::size_t>(head_.best_of);
    std::vector<Usage> usages;
    const Collected* first = nullptr;  // that is told
    for (std::size_t prompt = 0; prompt * made < answers.size(); ++prompt) {
      std::vector<const Collected*> best;
      for (std::size_t i = 0; i < made; ++i) best.push_back(&answers[prompt * made + i]);
      for (const Collected* answer : best) usages.push_back(answer->finished.usage);
      if (made > static_cast<std::size_t>(head_.n)) {
        std::ranges::stable_sort(best, std::greater<>(), [](const Collected* answer) { return likelihood(*answer); });
        best.resize(static_cast<std::size_t>(head_.n));
      }
      if (first == nullptr) first = best.front();
      for (std::size_t i = 0; i < best.size(); ++i) {
        write_choice(json, *best[i], prompt * static_cast<std::size_t>(head_.n) + i, echo_of(prompt));
      }
    }
    json.end_array();
    json.key("usage");
    write_usage(json, sum_usage(usages, made));
    json.key("timings");
    write_timings(json, usages);
    if (head_.verbose) {
      const bool new_line = first->text.find('\n') != std::string::npos;
      head_.verbose(*first, static_cast<std::size_t>(first - answers.data()), new_line, out);
    }
    json.end_object();
    return out;
  }

  std::size_t repeated_bytes() const override {
    std::size_t bytes = 0;
    for (const std::string& prompt : head_.echo) bytes += prompt.size();
    return bytes * static_cast<std::size_t>(head_.n);
  }

 private:
  struct Choice {
    bool opened = false;
    bool echoed = false;
    std::vector<TokenChances> prompt;  // until it is echoed
    std::vector<TokenChances> untold;
    TextOffset offset;
    bool new_line = false;  // there was one; noted for `__verbose`
    Usage usage;
  };

  bool tells() const { return head_.tokenizer != nullptr; }
  std::string_view echo_of(std::size_t prompt) const {
    return prompt < head_.echo.size() ? std::string_view(head_.echo[prompt]) : std::string_view();
  }

  void write_head(JsonWriter& json, std::string_view object) const {
    json.field("id", head_.id);
    json.field("object", object);
    json.field("created", head_.created);
    json.field("model", head_.model);
    json.field("system_fingerprint", head_.fingerprint);
  }

  void write_choice(JsonWriter& json, const Collected& answer, std::size_t index, std::string_view echo) const {
    json.begin_object();
    json.field("index", index);
    if (chat_) {
      json.begin_object("message");
      json.field("role", "assistant");
      json.field("content", answer.text);
      json.end_object();
    } else {
      json.field("text", std::string(echo) + answer.text);
    }
    if (tells() || !chat_) json.key("logprobs");
    if (tells()) {
      const std::span<const TokenChances> all = answer.chances;
      const std::size_t told = told_tokens(*head_.tokenizer, all, answer.finished, answer.text.size());
      if (head_.firsts.empty()) {
        TextOffset offset{characters_of(echo)};
        write_logprobs(json, all.first(told), offset);
      } else {
        std::vector<TokenChances> with_prompt =
            prompt_of(index / static_cast<std::size_t>(head_.n), answer.prompt_chances);
        TextOffset offset{0, echo, with_prompt.size()};
        with_prompt.insert(with_prompt.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(told));
        write_logprobs(json, with_prompt, offset);
      }
    } else if (!chat_) {
      json.null();
    }
    json.field("finish_reason", openai_finish_reason(answer.finished.reason));
    json.end_object();
  }

  void write_logprobs(JsonWriter& json, std::span<const TokenChances> chances, TextOffset& offset) const {
    if (chat_) {
      write_chat_logprobs(json, *head_.tokenizer, chances);
    } else {
      write_completion_logprobs(json, *head_.tokenizer, chances, offset);
    }
  }

  static std::size_t characters_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
  }

  void begin_chunk(std::int32_t index, std::string& out) const {
    out += chunk_open_;
    append_json_number(out, static_cast<std::int64_t>(index));
    out += ',';
  }

  // The likelihoods of a prompt's tokens, the first one included.
  std::vector<TokenChances> prompt_of(std::size_t prompt, std::span<const TokenChances> others) const {
    std::vector<TokenChances> out = {first_of_prompt(head_.firsts[prompt])};
    out.insert(out.end(), others.begin(), others.end());
    return out;
  }

  // The first chunk of a chat names the role.
  Choice& open(const Event& event, std::string& out) {
    Choice& choice = choices_[static_cast<std::size_t>(event.choice)];
    if (choice.opened) return choice;
    choice.opened = true;
    if (!chat_) return choice;
    begin_chunk(event.choice, out);
    out += "\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n";
    return choice;
  }

  // The first text of a completion that echoes is its prompt.
  void echo(const Event& event, Choice& choice, std::string& out) const {
    const auto prompt = static_cast<std::size_t>(event.choice / head_.n);
    const std::string_view echo = echo_of(prompt);
    if (std::exchange(choice.echoed, true) || echo.empty()) return;
    Event nothing;
    nothing.choice = event.choice;
    if (head_.firsts.empty()) {
      choice.offset.characters = characters_of(echo);
      return write_text_chunk(nothing, echo, choice, 0, out);
    }
    std::vector<TokenChances> untold = std::exchange(choice.untold, prompt_of(prompt, choice.prompt));
    choice.offset = {0, echo, choice.untold.size()};
    write_text_chunk(nothing, echo, choice, choice.untold.size(), out);
    choice.untold = std::move(untold);
    std::vector<TokenChances>().swap(choice.prompt);
  }

  void write_text_chunk(const Event& event, std::string_view text, Choice& choice, std::size_t told,
                        std::string& out) const {
    begin_chunk(event.choice, out);
    out += words_.text_open;
    append_json_escaped(out, text);
    out += words_.text_close;
    if (tells()) {
      out += ",\"logprobs\":";
      JsonWriter json(out);
      write_logprobs(json, std::span<const TokenChances>(choice.untold).first(told), choice.offset);
      choice.untold.clear();
    } else if (!chat_) {
      out += ",\"logprobs\":null";
    }
    out += ",\"finish_reason\":null}]";
    if (event.kind == Event::Kind::text && event.usage.prompt > 0) {
      out += ",\"timings\":";
      JsonWriter json(out);
      write_timings(json, event.usage);
    }
    out += "}\n\n";
  }

  void write_usage_chunk(std::string& out) const {
    std::vector<Usage> usages;
    for (const Choice& choice : choices_) usages.push_back(choice.usage);
    out += "data: ";
    JsonWriter json(out);
    json.begin_object();
    write_head(json, words_.chunk_object);
    json.begin_array("choices");
    json.end_array();
    json.key("usage");
    write_usage(json, sum_usage(usages, static_cast<std::size_t>(head_.n)));
    json.key("timings");  // llama-server has them in the last chunk, whatever that is
    write_timings(json, usages);
    json.end_object();
    out += "\n\n";
  }

  const AnswerHead head_;
  const ObjectWords& words_;
  const bool chat_;
  std::string chunk_open_;
  std::vector<Choice> choices_;
  std::size_t ended_ = 0;
};

}  // namespace

std::string_view openai_finish_reason(FinishReason reason) {
  if (reason == FinishReason::cancelled) return "cancelled";
  return reason == FinishReason::stop ? "stop" : "length";
}

Usage sum_usage(const std::vector<Usage>& usages, std::size_t of_one_prompt) {
  Usage sum = usages.front();
  sum.prompt = sum.cached = sum.completion = 0;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    sum.completion += usages[i].completion;
    if (i % of_one_prompt != 0) continue;
    sum.prompt += usages[i].prompt;
    sum.cached += usages[i].cached;
  }
  return sum;
}

void write_usage(JsonWriter& json, const Usage& usage, std::optional<TokenCount> reasoning) {
  json.begin_object();
  json.field("prompt_tokens", usage.prompt);
  json.field("completion_tokens", usage.completion);
  json.field("total_tokens", usage.prompt + usage.completion);
  json.begin_object("prompt_tokens_details");
  json.field("cached_tokens", usage.cached);
  json.end_object();
  if (reasoning) {
    json.begin_object("completion_tokens_details");
    json.field("reasoning_tokens", *reasoning);
    json.end_object();
  }
  json.end_object();
}

void write_prompt_progress(JsonWriter& json, const Event& progress) {
  json.begin_object();
  json.field("total", progress.usage.prompt);
  json.field("cache", progress.usage.cached);
  json.field("processed", progress.prefilled);
  json.field("time_ms", std::chrono::floor<milliseconds>(progress.usage.prefill).count());
  json.end_object();
}

void write_timings(JsonWriter& json, const Usage& usage) {
  const TokenCount prompt = usage.prompt - usage.cached;
  const double prompt_ms = to_milliseconds(usage.prefill);
  const TokenCount behind = usage.completion - usage.begun - 1;  // the first token that was generated here
  const double predicted_ms = to_milliseconds(usage.decode);
  const auto per = [](double total, double parts) { return parts > 0 ? total / parts : 0.0; };
  json.begin_object();
  json.field("cache_n", usage.cached);
  json.field("prompt_n", prompt);
  json.field("prompt_ms", prompt_ms);
  json.field("prompt_per_token_ms", per(prompt_ms, prompt));
  json.field("prompt_per_second", per(1000.0 * prompt, prompt_ms));
  json.field("predicted_n", usage.completion);
  json.field("predicted_ms", predicted_ms);
  json.field("predicted_per_token_ms", per(predicted_ms, behind));
  json.field("predicted_per_second", behind > 0 ? per(1000.0 * behind, predicted_ms) : 0.0);
  if (usage.draft_tokens > 0) {
    json.field("draft_n", usage.draft_tokens);
    json.field("draft_n_accepted", usage.accepted_tokens);
  }
  if (usage.forced_tokens > 0) json.field("forced_n", usage.forced_tokens);
  json.field("queue_ms", to_milliseconds(usage.queue));
  json.field("steps", usage.steps);
  json.field("steps_shared", usage.shared);
  json.field("preemptions", usage.preemptions);
  json.field("cpu_ms", to_milliseconds(usage.cpu));
  if (usage.joules) json.field("joules", *usage.joules);
  if (usage.cache) {
    json.key("cache");
    write_cache_use(json, *usage.cache, usage.cached);
  }
  json.end_object();
}

void write_timings(JsonWriter& json, const std::vector<Usage>& choices) {
  Usage usage = choices.front();
  for (auto other = choices.begin() + 1; other != choices.end(); ++other) {
    usage.cpu += other->cpu;
    if (other->joules) usage.joules = usage.joules.value_or(0) + *other->joules;
  }
  write_timings(json, usage);
}

std::unique_ptr<AnswerWriter> make_chat_writer(AnswerHead head) {
  return std::make_unique<OpenAiWriter>(std::move(head), kChat);
}

std::unique_ptr<AnswerWriter> make_completion_writer(AnswerHead head) {
  return std::make_unique<OpenAiWriter>(std::move(head), kCompletion);
}

}  // namespace chasqui
