#include "api/generation_fields.h"

#include <charconv>
#include <limits>

namespace chasqui {
namespace {

namespace json = boost::json;

void read_float(Fields& fields, std::string_view name, float& out) {
  if (const auto value = fields.number(name)) out = static_cast<float>(*value);
}

void read_int(Fields& fields, std::string_view name, std::int32_t& out) {
  const auto value = fields.integer(name);
  if (!value) return;
  if (*value < std::numeric_limits<std::int32_t>::min() || *value > std::numeric_limits<std::int32_t>::max()) {
    fields.refuse(name, "a whole number of at most 31 bits");
  } else {
    out = static_cast<std::int32_t>(*value);
  }
}

void read_stop(Fields& fields, std::vector<std::string>& stop) {
  const json::value* value = fields.any("stop");
  if (value == nullptr) return;
  if (value->is_string()) {
    stop.emplace_back(value->get_string());
    return;
  }
  if (value->is_array()) {
    for (const json::value& item : value->get_array()) {
      if (!item.is_string()) return fields.refuse("stop", "a string or an array of strings");
      stop.emplace_back(item.get_string());
    }
    return;
  }
  fields.refuse("stop", "a string or an array of strings");
}

void read_seed(Fields& fields, SamplingParams& sampling) {
  const auto seed = fields.integer("seed");
  if (!seed || *seed == -1) return;  // -1: random, as in llama-server
  // Any 64-bit seed of a client is a valid wish; the generator takes 32 bits of it.
  const auto bits = static_cast<std::uint64_t>(*seed);
  sampling.seed = static_cast<std::uint32_t>(bits ^ (bits >> 32));
}

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

// OpenAI's {"token id": bias} and llama-server's [[token id, bias | false], …].
void read_logit_bias(Fields& fields, std::vector<LogitBias>& out) {
  constexpr std::string_view kAllowed = "an object {\"token id\": number} or an array of [token id, number | false]";
  const json::value* value = fields.any("logit_bias");
  if (value == nullptr) return;
  const auto add = [&out](std::optional<Token> token, const json::value& bias_value) {
    const auto bias = bias_of(bias_value);
    if (!token || !bias) return false;
    out.push_back({*token, *bias});
    return true;
  };
  bool ok = value->is_object() || value->is_array();
  if (value->is_object()) {
    for (const auto& [key, bias] : value->get_object()) ok = ok && add(token_of(key), bias);
  } else if (value->is_array()) {
    for (const json::value& item : value->get_array()) {
      const json::array* pair = item.if_array();
      ok = ok && pair != nullptr && pair->size() == 2 && (*pair)[0].is_int64() && (*pair)[0].get_int64() >= 0 &&
           (*pair)[0].get_int64() <= std::numeric_limits<Token>::max() &&
           add(static_cast<Token>((*pair)[0].get_int64()), (*pair)[1]);
    }
  }
  if (!ok) fields.refuse("logit_bias", kAllowed);
}

void read_max_tokens(Fields& fields, RequestDraft& draft) {
  for (const std::string_view name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
    if (const auto value = fields.integer(name)) draft.max_tokens = *value;
  }
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

SamplingParams default_sampling(const ModelInfo& info) {
  SamplingParams sampling;
  const RecommendedSampling& wish = info.sampling;
  sampling.temperature = wish.temperature.value_or(sampling.temperature);
  sampling.top_k = wish.top_k.value_or(sampling.top_k);
  sampling.top_p = wish.top_p.value_or(sampling.top_p);
  sampling.min_p = wish.min_p.value_or(sampling.min_p);
  sampling.repeat_last_n = wish.repeat_last_n.value_or(sampling.repeat_last_n);
  sampling.repeat_penalty = wish.repeat_penalty.value_or(sampling.repeat_penalty);
  return sampling;
}

ServiceClass read_class(Fields& fields, ServiceClass unsaid) {
  ServiceClass out = unsaid;
  if (const auto tier = fields.string("service_tier")) {
    if (*tier == "priority") {
      out = ServiceClass::interactive;
    } else if (*tier == "flex") {
      out = ServiceClass::background;
    } else if (*tier != "auto" && *tier != "default") {
      fields.refuse("service_tier", "auto, default, priority or flex");
    }
  }
  // `class` is what the local socket's protocol calls it.
  for (const std::string_view field : {"priority", "class"}) {
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
  SamplingParams& sampling = draft.sampling;
  read_float(fields, "temperature", sampling.temperature);
  read_int(fields, "top_k", sampling.top_k);
  read_float(fields, "top_p", sampling.top_p);
  read_float(fields, "min_p", sampling.min_p);
  read_int(fields, "min_keep", sampling.min_keep);
  read_int(fields, "repeat_last_n", sampling.repeat_last_n);
  read_float(fields, "repeat_penalty", sampling.repeat_penalty);
  read_float(fields, "frequency_penalty", sampling.frequency_penalty);
  read_float(fields, "presence_penalty", sampling.presence_penalty);
  read_seed(fields, sampling);
  read_logit_bias(fields, sampling.logit_bias);
  sampling.ignore_eos = fields.boolean("ignore_eos").value_or(sampling.ignore_eos);
  read_stop(fields, draft.stop);
  read_max_tokens(fields, draft);
  draft.service_class = read_class(fields, draft.service_class);
  draft.use_cache = fields.boolean("cache_prompt").value_or(draft.use_cache);
  if (const auto timeout = fields.integer("timeout_ms")) draft.timeout_ms = *timeout;
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
