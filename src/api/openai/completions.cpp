#include "api/openai/completions.h"

#include <algorithm>

#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/gap_tokens.h"
#include "api/body/generation_fields.h"
#include "api/body/prompt.h"
#include "api/body/prompt_forms.h"
#include "api/openai/chat_json.h"
#include "api/openai/openai_body.h"
#include "api/openai/openai_json.h"
#include "net/sse.h"

namespace chasqui {
namespace {

namespace json = boost::json;

// Seed of this route: data: {"text": …} for each piece, data: [DONE] at the end.
class TextWriter final : public AnswerWriter {
 public:
  void text(const Event& event, std::string& out) override { frame(event.text, out); }
  void end(const Event& event, std::string& out) override {
    frame(event.text, out);
    net::append_sse_data_line(out, "[DONE]");
  }
  std::string whole(const std::vector<Collected>& answers) override {
    const Event& finished = answers.front().finished;
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    json.field("text", answers.front().text);
    json.field("finish_reason", name(finished.reason));
    json.key("usage");
    write_usage(json, finished.usage);
    json.key("timings");
    write_timings(json, finished.usage);
    json.end_object();
    return out;
  }

 private:
  static void frame(std::string_view text, std::string& out) {
    if (text.empty()) return;
    out += "data: {\"text\":";
    append_json_string(out, text);
    out += "}\n\n";
  }
};

// The likelihoods of all tokens of the prompts, which are kept until the answer is written.
Result<void> tell_prompts(const std::vector<MediaPrompt>& prompts, OpenAiBody& common) {
  std::size_t tokens = 0;
  for (const MediaPrompt& prompt : prompts) {
    tokens += prompt.tokens.size();
    if (!prompt.tokens.empty()) common.head.firsts.push_back(prompt.tokens.front());
  }
  const auto each = static_cast<std::size_t>((1 + common.draft.sampling.chances) * common.head.best_of);
  if (tokens * each > kSizeLimit<"prompt_chances">) {
    return invalid_field("logprobs", "with echo the prompts may have " + std::to_string(kSizeLimit<"prompt_chances">) +
                                         " likelihoods: tokens × (1 + logprobs) × n; these have " +
                                         std::to_string(tokens * each));
  }
  common.draft.tell_prompt = true;
  return {};
}

// What is put before the answers: a text as the client wrote it, tokens as the model sees them.
std::string echo_of(const ServedModel& served, const json::value& prompt, const MediaPrompt& read) {
  if (prompt.is_string()) return std::string(prompt.get_string());
  return detokenize(*served.model.tokenizer, read.tokens);
}

}  // namespace

Result<Answer> prepare_chat(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  OpenAiBody common = read_openai_body(served, caller, fields, "chatcmpl-", new_draft(served, caller));
  const Chat chat = read_chat(fields, served.config.defaults, served.model.media.get());
  const ReasoningWish reasoning = read_reasoning_budget(fields);
  if (!fields.ok()) return fields.error();
  auto made = requests_from_chat(served, chat, std::move(common.draft), common.head.n, reasoning);
  if (!made) return made.error();
  if (made->reasoning_switch) made->reasoning_switch->id = common.head.id;
  common.show_requests(served, made->requests);
  auto writer = made->format != nullptr ? make_parts_writer(std::move(common.head), std::move(made->format))
                                        : make_chat_writer(std::move(common.head));
  Answer answer = answer_of(std::move(made->requests), common.stream, std::move(writer));
  answer.reasoning_switch = std::move(made->reasoning_switch);
  answer.skipped_tools = chat.skipped_tools;
  return answer;
}

Result<Answer> prepare_completion(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  OpenAiBody common = read_openai_body(served, caller, fields, "cmpl-", new_draft(served, caller));
  const json::value* prompt = fields.any("prompt");
  if (prompt == nullptr) fields.refuse("prompt", "a string or an array of token ids");
  const bool echo = fields.boolean("echo").value_or(false);
  const auto suffix = fields.string("suffix");
  const bool tells_prompt = echo && common.head.tokenizer != nullptr;
  if (tells_prompt && suffix && !suffix->empty()) fields.refuse("suffix", "left out with echo and logprobs");
  if (!fields.ok()) return fields.error();
  auto prompts = read_prompts(served, *prompt);
  if (!prompts) return prompts.error();
  const bool has_media = std::ranges::any_of(*prompts, [](const MediaPrompt& one) { return one.units != nullptr; });
  if (has_media && (echo || (suffix && !suffix->empty()))) {
    const std::string field = echo ? "echo" : "suffix";
    return invalid_field(field, field + " must be left out where the prompt has pictures or sounds");
  }
  if (echo) {
    for (std::size_t i = 0; i < prompts->size(); ++i) {
      const json::value& one = is_one_prompt(*prompt) ? *prompt : prompt->get_array()[i];
      common.head.echo.push_back(echo_of(served, one, (*prompts)[i]));
    }
  }
  if (tells_prompt) {
    if (auto few = tell_prompts(*prompts, common); !few) return few.error();
  }
  if (suffix && !suffix->empty()) {
    const auto after = read_suffix(served, *suffix);
    if (!after) return after.error();
    for (MediaPrompt& before : *prompts) {
      auto filled = around_gap(served, std::move(before.tokens), *after);
      if (!filled) return filled.error();
      before.tokens = std::move(*filled);
    }
  }
  auto requests = requests_of_prompts(served, common.draft, std::move(*prompts), common.head.best_of);
  if (!requests) return requests.error();
  common.head.prompts = static_cast<std::int32_t>(requests->size()) / common.head.best_of;
  common.show_requests(served, *requests);
  return answer_of(std::move(*requests), common.stream, make_completion_writer(std::move(common.head)));
}

Result<Answer> prepare_generate(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  // This route's own defaults: greedy over the whole vocabulary, 64 tokens, streaming.
  RequestDraft draft = new_draft(served, caller);
  draft.sampling.temperature = 0;
  draft.sampling.top_k = 0;
  draft.sampling.top_p = 1;
  draft.sampling.min_p = 0;
  draft.max_tokens = 64;
  read_common_fields(caller, fields, draft);
  read_adapters(served, fields, draft);
  read_constraint(fields, draft);
  refuse_unsupported(fields, {"n_probs", "post_sampling_probs", "logprobs", "echo", "suffix"});
  if (fields.integer("n").value_or(1) != 1) fields.refuse("n", "1: this route gives one answer");
  if (const auto penalty = fields.number("rep_penalty")) draft.sampling.repeat_penalty = static_cast<float>(*penalty);
  const bool stream = fields.boolean("stream").value_or(true);
  const auto prompt = fields.string("prompt");
  if (!prompt) fields.refuse("prompt", "a string");
  if (!fields.ok()) return fields.error();
  auto request = request_from_prompt(served, json::value(*prompt), std::move(draft));
  if (!request) return request.error();
  return Answer{std::move(*request), stream, std::make_unique<TextWriter>()};
}

}  // namespace chasqui
