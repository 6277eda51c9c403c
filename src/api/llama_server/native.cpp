#include "api/llama_server/native.h"

#include <algorithm>

#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/generation_fields.h"
#include "api/body/generation_readers.h"
#include "api/body/prompt.h"
#include "api/core/answer.h"
#include "api/openai/likelihoods.h"
#include "api/openai/native_json.h"
#include "api/openai/openai_body.h"
#include "api/openai/openai_json.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

class NativeWriter final : public AnswerWriter {
 public:
  explicit NativeWriter(NativeHead head) : head_(std::move(head)), states_(head_.requests.size()) {}

  void text(const Event& event, std::string& out) override {
    State& state = at(event);
    ++state.predicted;
    state.tokens.push_back(event.token);
    if (!event.chances.empty()) state.untold.push_back(event.chances);
    state.new_line = state.new_line || event.text.find('\n') != event.text.npos;
    if (!event.text.empty()) write_part(event, state, state.untold.size(), out);
  }

  void progress(const Event& event, std::string& out) override { write_part(event, at(event), 0, out); }

  void end(const Event& event, std::string& out) override {
    State& state = at(event);
    const std::size_t told = told_tokens(*head_.tokenizer, state.untold, event, event.text.size());
    // The last event has no content of its own, as in llama-server: clients append `content` until `stop` is true.
    if (!event.text.empty() || told > 0) write_part(event, state, told, out);
    Collected rest;
    rest.finished = event;
    out += "data: ";
    write_native_final(head_, rest, static_cast<std::size_t>(event.choice), state.new_line, out);
    out += "\n\n";
  }

  std::string whole(const std::vector<Collected>& answers) override {
    std::string out;
    if (answers.size() > 1) out += '[';
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (i > 0) out += ',';
      write_native_final(head_, answers[i], i, answers[i].text.find('\n') != std::string::npos, out);
    }
    if (answers.size() > 1) out += ']';
    return out;
  }

  std::size_t repeated_bytes() const override { return native_repeated_bytes(head_); }

 private:
  struct State {
    std::vector<TokenChances> untold;
    std::vector<Token> tokens;  // not told yet
    TokenCount predicted = 0;
    bool new_line = false;
  };

  State& at(const Event& event) { return states_[static_cast<std::size_t>(event.choice)]; }

  void write_part(const Event& event, State& state, std::size_t told, std::string& out) const {
    const Request& request = *head_.requests[static_cast<std::size_t>(event.choice)];
    out += "data: ";
    JsonWriter json(out);
    json.begin_object();
    json.field("index", event.choice);
    json.field("content", event.text);
    write_tokens(json, state.tokens);
    json.field("stop", false);
    json.field("id_slot", -1);
    json.field("tokens_predicted", state.predicted);
    json.field("tokens_evaluated", request.prompt.size());
    if (event.kind == Event::Kind::text && request.tell_usage) {
      json.key("timings");
      write_timings(json, event.usage);
    }
    if (event.kind == Event::Kind::progress) {
      json.key("prompt_progress");
      write_prompt_progress(json, event);
    }
    if (told > 0) {
      json.key("completion_probabilities");
      write_probabilities(json, *head_.tokenizer, std::span<const TokenChances>(state.untold).first(told),
                          request.sampling.chances_after);
    }
    json.end_object();
    out += "\n\n";
    state.untold.clear();
    state.tokens.clear();
  }

  const NativeHead head_;
  std::vector<State> states_;
};

// Each once, however often it is asked for.
void read_shown(Fields& fields, std::vector<std::string>& shown) {
  std::vector<std::string> asked;
  read_strings(fields, "response_fields", asked);
  const auto too_long = [](const std::string& name) { return name.size() > kSizeLimit<"response_name_bytes">; };
  if (asked.size() > kSizeLimit<"response_fields"> || std::ranges::any_of(asked, too_long)) {
    fields.refuse("response_fields", "at most " + std::to_string(kCountLimit<"response_fields">) +
                                         " names of at most " + std::to_string(kSizeLimit<"response_name_bytes">) +
                                         " bytes");
  }
  for (std::string& name : asked) {
    if (std::ranges::find(shown, name) == shown.end()) shown.push_back(std::move(name));
  }
}

}  // namespace

NativeBody read_native_body(const ServedModel& served, const Caller& caller, Fields& fields) {
  NativeBody out;
  out.draft = new_draft(served, caller);
  read_common_fields(caller, fields, out.draft);
  read_adapters(served, fields, out.draft);
  read_chances(fields, "logprobs", out.draft);
  read_constraint(fields, out.draft);
  for (const std::string_view name : {"n", "n_cmpl"}) {
    const std::int64_t count = fields.integer(name).value_or(out.n);
    if (count < 1 || count > kCountLimit<"answers">) {
      fields.refuse(name, "between 1 and " + std::to_string(kCountLimit<"answers">));
    }
    if (fields.ok()) out.n = static_cast<std::int32_t>(count);
  }
  out.stream = fields.boolean("stream").value_or(false);
  out.return_tokens = fields.boolean("return_tokens").value_or(false);
  read_shown(fields, out.shown);
  return out;
}

Result<Answer> native_answer(const ServedModel& served, NativeBody body, std::vector<MediaPrompt> prompts) {
  auto requests = requests_of_prompts(served, body.draft, std::move(prompts), body.n);
  if (!requests) return requests.error();
  NativeHead head = native_head(served, *requests);
  head.stream = body.stream;
  head.return_tokens = body.return_tokens;
  head.shown = std::move(body.shown);
  return answer_of(std::move(*requests), body.stream, std::make_unique<NativeWriter>(std::move(head)));
}

Result<Answer> prepare_native(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  NativeBody native = read_native_body(served, caller, fields);
  const json::value* prompt = fields.any("prompt");
  if (prompt == nullptr) fields.refuse("prompt", "a string, an array of token ids, or an array of those");
  if (!fields.ok()) return fields.error();
  auto prompts = read_prompts(served, *prompt);
  if (!prompts) return prompts.error();
  return native_answer(served, std::move(native), std::move(*prompts));
}

}  // namespace chasqui
