#include "api/body/generation_readers.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

std::optional<Token> token_of(std::string_view text) {
  Token token = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return token;
}

std::optional<float> bias_of(const json::value& value) {
  if (value.is_int64()) return static_cast<float>(value.get_int64());
  if (value.is_double()) return static_cast<float>(value.get_double());
  if (value.is_bool() && !value.get_bool()) return -std::numeric_limits<float>::infinity();  // false: never
  return std::nullopt;
}

bool is_token(const json::value& value) {
  return value.is_int64() && value.get_int64() >= 0 && value.get_int64() <= std::numeric_limits<Token>::max();
}

std::optional<SamplingStep> step_of(std::string_view text) {
  static constexpr std::pair<std::string_view, SamplingStep> kOther[] = {{"typical_p", SamplingStep::typical_p},
                                                                         {"typical", SamplingStep::typical_p},
                                                                         {"temp", SamplingStep::temperature},
                                                                         {"top-k", SamplingStep::top_k},
                                                                         {"top-p", SamplingStep::top_p},
                                                                         {"min-p", SamplingStep::min_p},
                                                                         {"top-n-sigma", SamplingStep::top_n_sigma}};
  for (int i = 0; i <= static_cast<int>(SamplingStep::adaptive_p); ++i) {
    const auto step = static_cast<SamplingStep>(i);
    if (text == name(step)) return step;
  }
  for (const auto& [other, step] : kOther) {
    if (text == other) return step;
  }
  return std::nullopt;
}

std::optional<SamplingStep> step_of_letter(char letter) {
  switch (letter) {
    case 'd': return SamplingStep::dry;
    case 'k': return SamplingStep::top_k;
    case 'y': return SamplingStep::typical_p;
    case 'p': return SamplingStep::top_p;
    case 's': return SamplingStep::top_n_sigma;
    case 'm': return SamplingStep::min_p;
    case 't': return SamplingStep::temperature;
    case 'x': return SamplingStep::xtc;
    case 'i': return SamplingStep::infill;
    case 'e': return SamplingStep::penalties;
    case 'a': return SamplingStep::adaptive_p;
    default: return std::nullopt;
  }
}

// -1 stands for no limit, as in llama-server.
void read_milliseconds(Fields& fields, std::string_view name, std::optional<std::int64_t>& out) {
  const auto value = fields.integer(name);
  if (value && *value != -1) out = *value;
}

}  // namespace

void read_strings(Fields& fields, std::string_view name, std::vector<std::string>& out) {
  const json::value* value = fields.any(name);
  if (value == nullptr) return;
  if (value->is_string()) {
    out.emplace_back(value->get_string());
    return;
  }
  if (!value->is_array()) return fields.refuse(name, "a string or an array of strings");
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) return fields.refuse(name, "a string or an array of strings");
    out.emplace_back(item.get_string());
  }
}

void read_max_tokens(Fields& fields, std::string_view name, RequestDraft& draft) {
  if (const auto value = fields.integer(name)) draft.max_tokens = *value;
}

void read_breakers(Fields& fields, std::string_view name, RequestDraft& draft) {
  auto& breakers = draft.sampling.dry_sequence_breakers;
  breakers.clear();
  read_strings(fields, name, breakers);
  for (const std::string& breaker : breakers) {
    if (breaker.empty() || breaker.size() > 40) fields.refuse(name, "strings of 1 to 40 bytes");
  }
}

void read_samplers(Fields& fields, std::string_view name, RequestDraft& draft) {
  constexpr std::string_view kAllowed =
      "an array of penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature, infill and adaptive_p, "
      "each once, or a string of their letters e, d, s, k, y, p, m, x, t, i and a";
  std::vector<SamplingStep>& steps = draft.sampling.steps.emplace();
  const json::value& value = *fields.any(name);
  bool ok = value.is_array() || value.is_string();
  const auto add = [&](std::optional<SamplingStep> step) {
    ok = ok && step && std::find(steps.begin(), steps.end(), *step) == steps.end();
    if (ok) steps.push_back(*step);
  };
  if (value.is_array()) {
    for (const json::value& item : value.get_array()) {
      add(item.is_string() ? step_of(std::string_view(item.get_string())) : std::nullopt);
    }
  } else if (value.is_string()) {
    for (const char letter : value.get_string()) add(step_of_letter(letter));
  }
  if (!ok) fields.refuse(name, kAllowed);
}

void read_seed(Fields& fields, std::string_view name, RequestDraft& draft) {
  const boost::json::value* value = fields.any(name);
  std::uint64_t bits = 0;
  if (value != nullptr && value->is_uint64()) {
    bits = value->get_uint64();  // beyond what integer() takes
  } else {
    const auto seed = fields.integer(name);
    if (!seed || *seed == -1) return;  // -1: random, as in llama-server
    bits = static_cast<std::uint64_t>(*seed);
  }
  // Any 64-bit seed of a client is a valid wish; the generator takes 32 bits of it.
  draft.sampling.seed = static_cast<std::uint32_t>(bits ^ (bits >> 32));
}

// OpenAI's {"token id": bias} and llama-server's [[token id, bias | false], …], which both take texts, too.
void read_logit_bias(Fields& fields, std::string_view name, RequestDraft& draft) {
  constexpr std::string_view kAllowed =
      "an object {\"token id or text\": number} or an array of [token id or text, number | false], with texts of at "
      "most 1024 bytes";
  const json::value* value = fields.any(name);
  const std::size_t count = value->is_object()  ? value->get_object().size()
                            : value->is_array() ? value->get_array().size()
                                                : 0;
  if (count > kSizeLimit<"logit_bias">) {
    return fields.refuse(name,
                         "an object or an array of at most " + std::to_string(kSizeLimit<"logit_bias">) + " members");
  }
  draft.sampling.logit_bias.clear();  // the server's own
  const auto add = [&draft](const json::value& key, std::string_view text, const json::value& bias_value) {
    const auto bias = bias_of(bias_value);
    if (!bias) return false;
    if (is_token(key)) {
      draft.sampling.logit_bias.push_back({static_cast<Token>(key.get_int64()), *bias});
      return true;
    }
    if (!key.is_null() || text.size() > kSizeLimit<"logit_bias_bytes">) return false;
    if (const auto token = token_of(text)) {
      draft.sampling.logit_bias.push_back({*token, *bias});
    } else {
      draft.text_bias.emplace_back(text, *bias);
    }
    return !text.empty();
  };
  bool ok = value->is_object() || value->is_array();
  if (value->is_object()) {
    for (const auto& [key, bias] : value->get_object()) ok = ok && add(json::value(), key, bias);
  } else if (value->is_array()) {
    for (const json::value& item : value->get_array()) {
      const json::array* pair = item.if_array();
      ok = ok && pair != nullptr && pair->size() == 2;
      if (!ok) break;
      const json::value& key = (*pair)[0];
      ok = key.is_string() ? add(json::value(), std::string_view(key.get_string()), (*pair)[1])
                           : !key.is_null() && add(key, "", (*pair)[1]);
    }
  }
  if (!ok) fields.refuse(name, kAllowed);
}

void read_ignore_eos(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.sampling.ignore_eos = fields.boolean(name).value_or(draft.sampling.ignore_eos);
}

void read_stop(Fields& fields, std::string_view name, RequestDraft& draft) {
  std::vector<std::string> said;
  read_strings(fields, name, said);
  std::erase(said, std::string());  // llama-server's clients send it for none
  if (!said.empty()) draft.stop = std::move(said);
}

void read_stop_tokens(Fields& fields, std::string_view name, RequestDraft& draft) {
  const json::array* ids = fields.array(name);
  if (ids == nullptr) return;
  for (const json::value& id : *ids) {
    if (!is_token(id)) return fields.refuse(name, "an array of token ids");
    draft.stop_tokens.push_back(static_cast<Token>(id.get_int64()));
  }
}

void read_chances(Fields& fields, std::string_view name, RequestDraft& draft) {
  const auto count = fields.integer(name);
  if (!count) return;
  if (*count < 0 || *count > 100) return fields.refuse(name, "a whole number between 0 and 100");
  if (*count > 0) draft.sampling.chances = static_cast<std::int32_t>(*count);
}

void read_chances_after(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.sampling.chances_after = fields.boolean(name).value_or(false);
}

void read_tell_usage(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.tell_usage = fields.boolean(name).value_or(false);
}

void read_tell_progress(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.tell_progress = fields.boolean(name).value_or(false);
}

void read_draft_tokens_max(Fields& fields, std::string_view name, RequestDraft& draft) {
  const auto draft_tokens = fields.integer(name);
  if (!draft_tokens) return;
  if (*draft_tokens < 0 || *draft_tokens > kCountLimit<"draft_tokens">)
    return fields.refuse(name, "a whole number between 0 and 16");
  draft.draft_tokens_max = static_cast<TokenCount>(*draft_tokens);
}

// Which slots there are is not known here; make_request() looks.
void read_slot_label(Fields& fields, std::string_view name, RequestDraft& draft) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto label = fields.integer(name);
  if (!label) return;
  if (*label < -1 || *label > kMost) return fields.refuse(name, "a slot's number, or -1");
  draft.slot_label = static_cast<std::int32_t>(*label);
}

void read_use_cache(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.use_cache = fields.boolean(name).value_or(draft.use_cache);
}

void read_tell_cache(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.tell_cache = fields.boolean(name).value_or(false);
}

void read_deterministic(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.deterministic = fields.boolean(name).value_or(false);
}

void read_schema_order(Fields& fields, std::string_view name, RequestDraft& draft) {
  const auto order = fields.string(name);
  if (!order) return;
  if (*order != "written" && *order != "any") return fields.refuse(name, "written or any");
  draft.schema_order = *order == "any" ? SchemaOrder::any : SchemaOrder::written;
}

void read_timeout(Fields& fields, std::string_view name, RequestDraft& draft) {
  if (const auto timeout = fields.integer(name)) draft.timeout_ms = *timeout;
}

void read_prompt_limit(Fields& fields, std::string_view name, RequestDraft& draft) {
  read_milliseconds(fields, name, draft.prompt_ms);
}

void read_first_token_limit(Fields& fields, std::string_view name, RequestDraft& draft) {
  read_milliseconds(fields, name, draft.ttft_ms);
}

void read_predict_limit(Fields& fields, std::string_view name, RequestDraft& draft) {
  read_milliseconds(fields, name, draft.predict_ms);
}

void read_pings(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.ping_seconds = fields.integer(name);
  if (draft.ping_seconds && *draft.ping_seconds < -1) fields.refuse(name, "a whole number of seconds, or -1");
}

void read_keep(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.keep = fields.integer(name);
  if (draft.keep && *draft.keep < -1) fields.refuse(name, "a whole number from -1 on");
}

void read_discard(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.discard = fields.integer(name);
  if (draft.discard && *draft.discard < 0) fields.refuse(name, "a whole number from 0 on");
}

void read_chunk(Fields& fields, std::string_view name, RequestDraft& draft) {
  draft.chunk = fields.integer(name);
  if (draft.chunk && *draft.chunk < 0) fields.refuse(name, "a whole number from 0 on");
}

void read_indent(Fields& fields, std::string_view name, RequestDraft& draft) {
  const auto value = fields.integer(name);
  if (!value) return;
  if (*value < 0 || *value > std::numeric_limits<std::int32_t>::max()) {
    return fields.refuse(name, "0 or a number of spaces and tabs");
  }
  draft.indent_min = static_cast<std::int32_t>(*value);
}

void read_elsewhere(Fields&, std::string_view, RequestDraft&) {}

}  // namespace chasqui
