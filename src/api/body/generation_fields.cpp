#include "api/body/generation_fields.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "api/body/generation_readers.h"

namespace chasqui {
namespace {

namespace json = boost::json;

const GenerationField kFields[] = {
    {"max_tokens", "max_completion_tokens, n_predict", "-1", "≥ -1",
     "tokens of the answer; -1: until the context is full; 0: the prompt is only prefilled", &read_max_tokens},
    {"min_tokens", "", "", "", "the model may not end its answer before so many tokens"},
    {"temperature", "", "", "", "0: always the most likely token"},
    {"dynatemp_range", "", "", "", "the temperature is this much lower or higher, as the entropy is; 0: off"},
    {"dynatemp_exponent", "", "", "", "… by the entropy to this power"},
    {"top_k", "", "", "", "so many of the most likely tokens stay; 0 or less: off"},
    {"top_p", "", "", "", "the most likely tokens that have this likelihood together stay; 1: off"},
    {"min_p", "", "", "", "tokens stay that have this part of the likelihood of the most likely one; 0: off"},
    {"top_n_sigma", "", "", "",
     "tokens stay whose logit is within so many standard deviations of the best; 0 or less: off"},
    {"typical_p", "typ_p", "", "",
     "tokens stay whose surprise is nearest to the mean, until they have this likelihood; 1: off"},
    {"xtc_probability", "", "", "", "chance that the most likely tokens are left out; 0: off"},
    {"xtc_threshold", "", "", "",
     "… which are those that are at least so likely, without the last of them; above 0.5: off"},
    {"min_keep", "", "", "", "candidates that top_p, min_p, typical_p and xtc leave at least"},
    {"repeat_penalty", "repetition_penalty", "", "",
     "what the logits of tokens that were there are divided by (multiplied, below 0); 1: off"},
    {"repeat_last_n", "", "", "", "how far back the penalties look; -1: everywhere"},
    {"frequency_penalty", "", "", "", "taken off the logit for each time that the token was there"},
    {"presence_penalty", "", "", "", "taken off the logit once if the token was there"},
    {"dry_multiplier", "", "", "", "penalty for what goes on repeating earlier text; 0: off"},
    {"dry_base", "", "", "", "… which is multiplied by this with each further token that repeats"},
    {"dry_allowed_length", "", "", "", "repetitions up to this length are free"},
    {"dry_penalty_last_n", "", "", "", "how far back repetitions are looked for; -1: everywhere"},
    {"dry_sequence_breakers", "", "`[\"\\n\", \":\", \"\\\"\", \"*\"]`", "up to 32 strings", "where repetitions end",
     &read_breakers},
    {"mirostat", "", "", "", "1, 2: that version of Mirostat instead of all other samplers but the temperature"},
    {"mirostat_tau", "", "", "", "its target entropy"},
    {"mirostat_eta", "", "", "", "its learning rate"},
    {"adaptive_target", "", "", "", "likelihood that the sampler `adaptive_p` goes for; below 0: off"},
    {"adaptive_decay", "", "", "", "… and how long it remembers"},
    {"samplers", "", "`penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature`",
     "array of these names and `infill`, `adaptive_p`, or llama.cpp's letters for them",
     "which are used, in which order; an empty array or string: none, not even the temperature", &read_samplers},
    {"seed", "", "random", "whole number, -1: random", "the same seed, prompt and settings give the same answer",
     &read_seed},
    {"logit_bias", "", "", "up to 1,024", "`{\"token id or text\": bias}` or `[[token id or text, bias or false]]`",
     &read_logit_bias},
    {"ignore_eos", "", "false", "", "the model may not end its answer", &read_ignore_eos},
    {"stop", "", "", "up to 64 strings of 2,048 bytes; empty ones do not count",
     "the answer ends before the first of them", &read_stop},
    {"stop_token_ids", "", "", "up to 64 token ids", "the answer ends before the first of them", &read_stop_tokens},
    {"n_probs", "", "0", "0 … 100", "most likely tokens told with each token, see [Likelihoods](#likelihoods)",
     &read_chances},
    {"post_sampling_probs", "", "false", "", "… as the samplers have left them, as probabilities", &read_chances_after},
    {"grammar", "", "", "GBNF of up to 64 KiB", "what the answer has to look like, see [Constraints](#constraints)",
     &read_elsewhere},
    {"json_schema", "", "", "a JSON Schema", "the same, as a schema", &read_elsewhere},
    {"schema_order", "", "`--schema-order`", "`written`, `any`",
     "properties in the order of the schema, or in whichever the model likes (objects of up to eight declared "
     "properties)",
     &read_schema_order},
    {"response_format", "", "`text`", "`text`, `json_object`, `json_schema`", "OpenAI's word for it", &read_elsewhere},
    {"stream", "", "false", "", "", &read_elsewhere},
    {"stream_options.include_usage", "", "false", "", "a last chunk with `usage`", &read_elsewhere},
    {"timings_per_token", "", "false", "", "`timings` in every chunk of a stream", &read_tell_usage},
    {"return_progress", "", "false", "",
     "`prompt_progress` in a stream: how far the prompt has been prefilled, after each step, see [Streams](#streams)",
     &read_tell_progress},
    {"cache_prompt", "", "true, see `--no-cache-prompt`", "",
     "begin with what was computed before, and keep what is computed now ([prefix_cache.md](prefix_cache.md))",
     &read_use_cache},
    {"return_cache", "", "false", "",
     "`timings.cache`: where the beginning of the prompt came from, and why no more of it did "
     "([prefix_cache.md](prefix_cache.md#what-was-decided))",
     &read_tell_cache},
    {"deterministic", "", "false", "",
     "the same bytes in any company and whatever is in the cache ([repeatable_answers.md](repeatable_answers.md)); "
     "without a `seed` it is 0",
     &read_deterministic},
    {"speculative.n_max", "", "`--spec-draft-n-max`", "0 … 16",
     "draft tokens that a step may check ([speculation.md](speculation.md)); 0: none", &read_draft_tokens_max},
    {"id_slot", "", "-1", "0 … slots - 1, -1: none",
     "the number under which [`POST /slots/{id}?action=save`](#slots) finds what was computed; where it is computed is "
     "the server's choice",
     &read_slot_label},
    {"timeout_ms", "", "`--request-timeout`", "≥ 1", "from arrival; what was generated by then is delivered",
     &read_timeout},
    {"t_max_prompt_ms", "", "-1", "≥ 1, -1: none", "no effect, as in llama-server; see `ttft_timeout_ms`",
     &read_prompt_limit},
    {"ttft_timeout_ms", "", "`x-ttft-timeout-ms`, else -1", "≥ 1, -1: none",
     "from arrival to the first token; a request that would wait longer, or does, is answered with 503",
     &read_first_token_limit},
    {"t_max_predict_ms", "", "-1", "≥ 1, -1: none",
     "from the first token on; it ends the answer once that has a line break", &read_predict_limit},
    {"priority", "class", "the key's class", "`interactive`, `standard`, `background`, a whole number",
     "who is served first; of vLLM's numbers 0 is the default, those below it are interactive, those above it "
     "background",
     &read_elsewhere},
    {"service_tier", "", "`auto`", "any; `priority` and `flex` have an effect",
     "OpenAI's word for it: the key's class, the same, `interactive`, `background`; `priority` wins over it",
     &read_elsewhere},
    {"sse_ping_interval", "", "`--sse-ping-interval`", "seconds, below 1: none",
     "silence after which a stream gets a comment", &read_pings},
    {"n_keep", "", "`--keep`", "≥ -1",
     "tokens of the prompt that stay where `--context-shift` takes others out; -1: all of it", &read_keep},
    {"n_discard", "", "0", "≥ 0",
     "… and how many are taken out each time, a 64th of the context at least; 0: half of those behind them",
     &read_discard},
    {"n_cache_reuse", "", "`--cache-reuse`", "≥ 0",
     "texts of so many tokens that have moved up are not computed again, though their keys and values came of what "
     "was before them; 0: they are ([prefix_cache.md](prefix_cache.md#texts-that-have-moved))",
     &read_chunk},
    {"n_indent", "", "0", "≥ 0",
     "ends the answer at the first line, after its first, that is indented by fewer spaces and tabs, or is empty",
     &read_indent},
};

// What llama-server shows where each answer has a seed of its own.
constexpr std::uint32_t kRandomSeed = std::numeric_limits<std::uint32_t>::max();

const SamplingRule* rule_of(std::string_view name) {
  const auto rules = sampling_rules();
  const auto found = std::ranges::find(rules, name, &SamplingRule::field);
  return found != rules.end() ? &*found : nullptr;
}

void read_number(Fields& fields, std::string_view name, const SamplingRule& rule, SamplingParams& sampling) {
  if (rule.real != nullptr) {
    if (const auto value = fields.number(name)) sampling.*rule.real = static_cast<float>(*value);
    return;
  }
  const auto value = fields.integer(name);
  if (!value) return;
  if (*value < std::numeric_limits<std::int32_t>::min() || *value > std::numeric_limits<std::int32_t>::max()) {
    fields.refuse(name, "a whole number of at most 31 bits");
  } else {
    sampling.*rule.whole = static_cast<std::int32_t>(*value);
  }
}

void read_field(Fields& fields, std::string_view name, const GenerationField& field, RequestDraft& draft) {
  if (fields.any(name) == nullptr) return;
  if (field.read != nullptr) return field.read(fields, name, draft);
  read_number(fields, name, *rule_of(field.name), draft.sampling);
}

// Calls what(name) for each of "a, b".
template <class What>
void each_name(std::string_view names, const What& what) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(", "), names.size());
    what(names.substr(0, end));
    names.remove_prefix(std::min(end + 2, names.size()));
  }
}

std::string shown(double value) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.7g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

bool asks_for_nothing(const json::value& value) {
  if (value.is_bool()) return !value.get_bool();
  if (value.is_int64()) return value.get_int64() == 0;
  if (value.is_string()) return value.get_string().empty();
  if (value.is_array()) return value.get_array().empty();
  if (value.is_object()) return value.get_object().empty();
  return false;
}

}  // namespace

std::span<const GenerationField> generation_fields() { return kFields; }

ServiceClass read_class(Fields& fields, ServiceClass unsaid) {
  ServiceClass out = unsaid;
  if (const auto tier = fields.string("service_tier")) {
    if (*tier == "priority") {
      out = ServiceClass::interactive;
    } else if (*tier == "flex") {
      out = ServiceClass::background;
    }  // others ("auto", "default", "scale" …) leave it at the key's
  }
  // `class` is what the local socket's protocol calls it.
  for (const std::string_view field : {"priority", "class"}) {
    const json::value* value = fields.any(field);
    if (value != nullptr && value->is_number() && field == "priority") {
      // vLLM's: the smaller, the earlier.
      const std::int64_t number = fields.integer(field).value_or(0);
      if (number != 0) out = number < 0 ? ServiceClass::interactive : ServiceClass::background;
      continue;
    }
    const auto priority = fields.string(field);
    if (!priority) continue;
    if (*priority == "interactive") {
      out = ServiceClass::interactive;
    } else if (*priority == "standard") {
      out = ServiceClass::standard;
    } else if (*priority == "background") {
      out = ServiceClass::background;
    } else {
      fields.refuse(field, "interactive, standard or background");
    }
  }
  return out;
}

void read_generation_fields(Fields& fields, RequestDraft& draft) {
  for (const GenerationField& field : kFields) {
    read_field(fields, field.name, field, draft);
    each_name(field.aliases, [&](std::string_view alias) { read_field(fields, alias, field, draft); });
  }
  draft.service_class = read_class(fields, draft.service_class);
}

void write_generation_settings(JsonWriter& json, const Request& request, bool stream) {
  const SamplingParams& sampling = request.sampling;
  json.begin_object();
  json.field("seed", sampling.seed.value_or(kRandomSeed));
  for (const SamplingRule& rule : sampling_rules()) {
    if (rule.real != nullptr) {
      json.field(rule.field, sampling.*rule.real);
    } else {
      json.field(rule.field, sampling.*rule.whole);
    }
  }
  json.begin_array("dry_sequence_breakers");
  for (const std::string& breaker : sampling.dry_sequence_breakers) json.string(breaker);
  json.end_array();
  json.begin_array("samplers");
  for (const SamplingStep step : steps_of(sampling)) json.string(name(step));
  json.end_array();
  json.begin_array("stop");
  for (const std::string& stop : request.stop) json.string(stop);
  json.end_array();
  json.begin_array("logit_bias");
  for (const LogitBias& bias : sampling.logit_bias) {
    json.begin_object();
    json.field("token", bias.token);
    json.field("bias", bias.bias);  // null: never
    json.end_object();
  }
  json.end_array();
  json.field("max_tokens", request.max_tokens);
  json.field("n_predict", request.max_tokens);
  json.field("ignore_eos", sampling.ignore_eos);
  json.field("n_probs", std::max(sampling.chances, 0));
  json.field("post_sampling_probs", sampling.chances_after);
  json.field("timings_per_token", request.tell_usage);
  json.field("stream", stream);
  json.end_object();
}

std::string generation_field_rows() {
  std::string out = "| field | default | allowed | meaning |\n|---|---|---|---|\n";
  const SamplingParams defaults;
  for (const GenerationField& field : kFields) {
    out += "| `" + std::string(field.name) + "`";
    each_name(field.aliases, [&out](std::string_view alias) { out += ", `" + std::string(alias) + "`"; });
    if (const SamplingRule* rule = field.read == nullptr ? rule_of(field.name) : nullptr) {
      out += " | " + shown(rule->read(defaults)) + " | " + shown(rule->minimum) + " … " + shown(rule->maximum);
    } else {
      out += " | " + std::string(field.fallback) + " | " + std::string(field.allowed);
    }
    out += " | " + std::string(field.meaning) + " |\n";
  }
  return out;
}

void refuse_unsupported(Fields& fields, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::value* value = fields.any(name);
    if (value != nullptr && !asks_for_nothing(*value)) {
      fields.refuse(name, "left out: this version does not support it");
    }
  }
}

}  // namespace chasqui
