#include "api/llama_server/native.h"

#include <algorithm>

#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/generation_fields.h"
#include "api/body/generation_readers.h"
#include "api/body/prompt.h"
#include "api/core/answer.h"
#include "api/openai/likelihoods.h"
#include "api/openai/openai_body.h"
#include "api/openai/openai_json.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

class NativeWriter final : public AnswerWriter {
 public:
  struct Options {
    std::string model;
    std::shared_ptr<const Tokenizer> tokenizer;
    std::vector<RequestPtr> requests;
    std::vector<std::string> prompts;  // as text; made in the offload pool, long ones take long
    bool stream = false;
    bool return_tokens = false;
    std::vector<std::string> shown;
  };

  explicit NativeWriter(Options options) : options_(std::move(options)), states_(options_.requests.size()) {}

  void text(const Event& event, std::string& out) override {
    State& state = at(event);
    ++state.predicted;
    state.tokens.push_back(event.token);
    if (!event.chances.empty()) state.untold.push_back(event.chances);
    state.new_line = state.new_line || event.text.find('\n') != event.text.npos;
    if (!event.text.empty()) write_part(event, state, state.untold.size(), out);
  }

  void reading(const Event& event, std::string& out) override { write_part(event, at(event), 0, out); }

  void end(const Event& event, std::string& out) override {
    State& state = at(event);
    const std::size_t told = told_tokens(*options_.tokenizer, state.untold, event, event.text.size());
    // The last event has no content of its own, as in llama-server: clients append `content` until `stop` is true.
    if (!event.text.empty() || told > 0) write_part(event, state, told, out);
    Collected rest;
    rest.finished = event;
    out += "data: ";
    write_final(rest, static_cast<std::size_t>(event.choice), state.new_line, out);
    out += "\n\n";
  }

  std::string whole(const std::string& text, const Event& finished) override {
    std::vector<Collected> one(1);
    one.front().text = text;
    one.front().finished = finished;
    return whole_of(one);
  }

  std::string whole_of(const std::vector<Collected>& answers) override {
    std::string out;
    if (answers.size() > 1) out += '[';
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (i > 0) out += ',';
      write_final(answers[i], i, answers[i].text.find('\n') != std::string::npos, out);
    }
    if (answers.size() > 1) out += ']';
    return out;
  }

 private:
  struct State {
    std::vector<TokenChances> untold;
    std::vector<Token> tokens;  // not told yet
    TokenCount predicted = 0;
    bool new_line = false;
  };

  State& at(const Event& event) { return states_[static_cast<std::size_t>(event.choice)]; }

  static void write_tokens(JsonWriter& json, const std::vector<Token>& tokens) {
    json.key("tokens");
    json.begin_array();
    for (const Token token : tokens) json.number(token);
    json.end_array();
  }

  void write_part(const Event& event, State& state, std::size_t told, std::string& out) const {
    const Request& request = *options_.requests[static_cast<std::size_t>(event.choice)];
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
    if (event.kind == Event::Kind::reading) {
      json.key("prompt_progress");
      write_prompt_progress(json, event);
    }
    if (told > 0) {
      json.key("completion_probabilities");
      write_probabilities(json, *options_.tokenizer, std::span<const TokenChances>(state.untold).first(told),
                          request.sampling.chances_after);
    }
    json.end_object();
    out += "\n\n";
    state.untold.clear();
    state.tokens.clear();
  }

  static std::string_view stop_type(const Event& finished) {
    if (finished.reason != FinishReason::stop) return "limit";
    return finished.stop_string.empty() ? "eos" : "word";
  }

  bool shows(std::string_view name) const {
    return options_.shown.empty() || std::ranges::find(options_.shown, name) != options_.shown.end();
  }

  // An object of the answer: as a whole, or those of its members that are asked for by their paths, such as
  // "timings/prompt_n", which then stand beside the other fields under these names.
  template <class Write>
  void write_object(JsonWriter& json, std::string_view name, const Write& write) const {
    if (shows(name)) {
      json.key(name);
      write(json);
    }
    const std::string begin = std::string(name) + '/';
    std::optional<json::value> members;
    for (const std::string& path : options_.shown) {
      if (!path.starts_with(begin)) continue;
      if (!members) members = parsed(write);
      boost::system::error_code absent;
      const json::value* found = members->find_pointer(path.substr(name.size()), absent);
      if (found != nullptr) json.key(path), json.raw(json::serialize(*found));
    }
  }

  template <class Write>
  static json::value parsed(const Write& write) {
    std::string text;
    JsonWriter json(text);
    write(json);
    boost::system::error_code failed;
    return json::parse(text, failed);
  }

  void write_final(const Collected& answer, std::size_t index, bool new_line, std::string& out) const {
    const Request& request = *options_.requests[index];
    const Event& finished = answer.finished;
    JsonWriter json(out);
    const auto field = [&](std::string_view name, const auto& value) {
      if (shows(name)) json.field(name, value);
    };
    json.begin_object();
    field("index", index);
    field("content", answer.text);
    if (shows("tokens")) write_tokens(json, options_.return_tokens ? answer.tokens : std::vector<Token>());
    field("id_slot", -1);
    field("stop", true);
    field("model", options_.model);
    field("tokens_predicted", finished.usage.completion);
    field("tokens_evaluated", finished.usage.prompt);
    write_object(json, "generation_settings",
                 [&](JsonWriter& inner) { write_generation_settings(inner, request, options_.stream); });
    if (shows("prompt")) json.field("prompt", options_.prompts[index]);
    field("has_new_line", new_line);
    field("truncated", false);
    field("stop_type", stop_type(finished));
    field("stopping_word", finished.stop_string);
    field("tokens_cached", finished.usage.cached);
    write_object(json, "timings", [&](JsonWriter& inner) { write_timings(inner, finished.usage); });
    const std::span<const TokenChances> all = answer.chances;
    const auto told = all.first(told_tokens(*options_.tokenizer, all, finished, answer.text.size()));
    if (!told.empty() && shows("completion_probabilities")) {
      json.key("completion_probabilities");
      write_probabilities(json, *options_.tokenizer, told, request.sampling.chances_after);
    }
    json.end_object();
  }

  const Options options_;
  std::vector<State> states_;
};

}  // namespace

NativeBody read_native_body(const ServedModel& served, const Caller& caller, Fields& fields) {
  NativeBody out;
  out.draft = new_draft(served, caller);
  read_common_fields(caller, fields, out.draft);
  read_adapters(served.adapters, served.config.name, fields, out.draft);
  read_chances(fields, "logprobs", out.draft);
  read_constraint(fields, out.draft);
  for (const std::string_view name : {"n_cmpl", "n"}) {
    const std::int64_t count = fields.integer(name).value_or(out.n);
    if (count < 1 || count > kCountLimit<"answers">) {
      fields.refuse(name, "between 1 and " + std::to_string(kCountLimit<"answers">));
    }
    if (fields.ok()) out.n = static_cast<std::int32_t>(count);
  }
  out.stream = fields.boolean("stream").value_or(false);
  out.return_tokens = fields.boolean("return_tokens").value_or(false);
  read_strings(fields, "response_fields", out.shown);
  if (out.shown.size() > kSizeLimit<"response_fields">) {
    fields.refuse("response_fields", "at most " + std::to_string(kCountLimit<"response_fields">) + " names");
  }
  return out;
}

Result<Answer> native_answer(const ServedModel& served, NativeBody body, std::vector<std::vector<Token>> prompts) {
  auto requests = requests_of_prompts(served, body.draft, std::move(prompts), body.n);
  if (!requests) return requests.error();
  NativeWriter::Options options;
  options.model = served.config.name;
  options.tokenizer = served.model.tokenizer;
  options.requests = *requests;
  options.stream = body.stream;
  options.return_tokens = body.return_tokens;
  options.shown = std::move(body.shown);
  for (const RequestPtr& request : *requests) {
    options.prompts.push_back(detokenize(*served.model.tokenizer, request->prompt));
  }
  return answer_of(std::move(*requests), body.stream, std::make_unique<NativeWriter>(std::move(options)));
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
