#include "api/openai/native_json.h"

#include <algorithm>
#include <optional>
#include <span>

#include <boost/json.hpp>

#include "api/body/generation_fields.h"
#include "api/body/prompt.h"
#include "api/openai/likelihoods.h"
#include "api/openai/openai_json.h"

namespace chasqui {
namespace {

namespace json = boost::json;

std::string_view stop_type(const Event& finished) {
  if (finished.reason != FinishReason::stop) return "limit";
  return finished.stop_string.empty() ? "eos" : "word";
}

template <class Write>
json::value parsed(const Write& write) {
  std::string text;
  JsonWriter writer(text);
  write(writer);
  boost::system::error_code failed;
  return json::parse(text, failed);
}

// An object of the answer: as a whole, or those of its members that are asked for by their paths, such as
// "timings/prompt_n", which then stand beside the other fields under these names.
template <class Write>
void write_object(const NativeHead& head, JsonWriter& out, std::string_view name, const Write& write) {
  if (head.shows(name)) {
    out.key(name);
    write(out);
  }
  const std::string begin = std::string(name) + '/';
  std::optional<json::value> members;
  for (const std::string& path : head.shown) {
    if (!path.starts_with(begin)) continue;
    if (!members) members = parsed(write);
    boost::system::error_code absent;
    const json::value* found = members->find_pointer(path.substr(name.size()), absent);
    if (found != nullptr) out.key(path), out.raw(json::serialize(*found));
  }
}

// With the marker of clients where it has a picture or a sound.
std::string text_of_prompt(const Tokenizer& tokenizer, const Request& request) {
  const std::span<const Token> prompt(request.prompt);
  if (!request.media) return detokenize(tokenizer, prompt);
  std::string out;
  std::size_t at = 0;
  for (const MediaUnit& unit : *request.media) {
    const auto begin = static_cast<std::size_t>(unit.begin);
    out += detokenize(tokenizer, prompt.subspan(at, begin - at));
    out += kMediaMarker;
    at = begin + static_cast<std::size_t>(unit.positions);
  }
  return out + detokenize(tokenizer, prompt.subspan(at));
}

}  // namespace

bool NativeHead::shows(std::string_view name) const {
  return shown.empty() || std::ranges::find(shown, name) != shown.end();
}

NativeHead native_head(const ServedModel& served, const std::vector<RequestPtr>& requests) {
  NativeHead head;
  head.model = served.config.name;
  head.tokenizer = served.model.tokenizer;
  head.requests = requests;
  for (const RequestPtr& request : requests) {
    head.prompts.push_back(text_of_prompt(*served.model.tokenizer, *request));
  }
  return head;
}

std::size_t native_repeated_bytes(const NativeHead& head) {
  constexpr std::size_t kOfBias = 40;
  constexpr std::size_t kOfSettings = 2048;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < head.requests.size(); ++i) {
    const Request& request = *head.requests[i];
    bytes += kOfSettings + head.prompts[i].size() + request.sampling.logit_bias.size() * kOfBias;
    for (const std::string& stop : request.stop) bytes += stop.size();
  }
  return bytes;
}

void write_tokens(JsonWriter& json, const std::vector<Token>& tokens) {
  json.begin_array("tokens");
  for (const Token token : tokens) json.number(token);
  json.end_array();
}

void write_native_final(const NativeHead& head, const Collected& answer, std::size_t index, bool new_line,
                        std::string& out) {
  const Request& request = *head.requests[index];
  const Event& finished = answer.finished;
  JsonWriter json(out);
  const auto field = [&](std::string_view name, const auto& value) {
    if (head.shows(name)) json.field(name, value);
  };
  json.begin_object();
  field("index", index);
  field("content", answer.text);
  if (head.shows("tokens")) write_tokens(json, head.return_tokens ? answer.tokens : std::vector<Token>());
  field("id_slot", -1);
  field("stop", true);
  field("model", head.model);
  field("tokens_predicted", finished.usage.completion);
  field("tokens_evaluated", finished.usage.prompt);
  write_object(head, json, "generation_settings",
               [&](JsonWriter& inner) { write_generation_settings(inner, request, head.stream); });
  if (head.shows("prompt")) json.field("prompt", head.prompts[index]);
  field("has_new_line", new_line);
  field("truncated", finished.usage.truncated);
  field("stop_type", stop_type(finished));
  field("stopping_word", finished.stop_string);
  field("tokens_cached", finished.usage.cached);
  write_object(head, json, "timings", [&](JsonWriter& inner) { write_timings(inner, finished.usage); });
  const std::span<const TokenChances> all = answer.chances;
  const auto told = all.first(told_tokens(*head.tokenizer, all, finished, answer.text.size()));
  if (!told.empty() && head.shows("completion_probabilities")) {
    json.key("completion_probabilities");
    write_probabilities(json, *head.tokenizer, told, request.sampling.chances_after);
  }
  json.end_object();
}

void append_verbose(const NativeHead& head, const Collected& answer, std::size_t index, bool new_line,
                    std::string& out) {
  out += ",\"__verbose\":";
  write_native_final(head, answer, index, new_line, out);
}

}  // namespace chasqui
