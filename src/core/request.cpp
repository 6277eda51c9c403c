#include "core/request.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "base/utf8.h"

namespace chasqui {
namespace {

// One row per number that a client may send: the only place where their limits are written down.
struct NumberRule {
  const char* field;
  double minimum;
  double maximum;
  double (*read)(const SamplingParams&);
};

constexpr double kBig = 1e6;
const NumberRule kSamplingRules[] = {
    {"temperature", 0, 100, [](const SamplingParams& p) -> double { return p.temperature; }},
    {"top_k", -1, kBig, [](const SamplingParams& p) -> double { return p.top_k; }},
    {"top_p", 0, 1, [](const SamplingParams& p) -> double { return p.top_p; }},
    {"min_p", 0, 1, [](const SamplingParams& p) -> double { return p.min_p; }},
    {"min_keep", 0, kBig, [](const SamplingParams& p) -> double { return p.min_keep; }},
    {"repeat_last_n", -1, kBig, [](const SamplingParams& p) -> double { return p.repeat_last_n; }},
    {"repeat_penalty", 0.01, 100, [](const SamplingParams& p) -> double { return p.repeat_penalty; }},
    {"frequency_penalty", -100, 100, [](const SamplingParams& p) -> double { return p.frequency_penalty; }},
    {"presence_penalty", -100, 100, [](const SamplingParams& p) -> double { return p.presence_penalty; }},
};

std::string shown(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Result<void> check_sampling(const SamplingParams& sampling, const RequestLimits& limits) {
  for (const NumberRule& rule : kSamplingRules) {
    const double value = rule.read(sampling);
    if (!(value >= rule.minimum && value <= rule.maximum)) {  // NaN fails both
      return invalid_field(rule.field, std::string(rule.field) + " must be a number between " + shown(rule.minimum) +
                                           " and " + shown(rule.maximum));
    }
  }
  if (sampling.logit_bias.size() > limits.logit_bias_max) {
    return invalid_field("logit_bias",
                         "logit_bias may have at most " + std::to_string(limits.logit_bias_max) + " entries");
  }
  for (const LogitBias& bias : sampling.logit_bias) {
    if (bias.token < 0 || bias.token >= limits.vocabulary) {
      return invalid_field("logit_bias", "logit_bias token ids must be between 0 and " +
                                             std::to_string(limits.vocabulary - 1) + "; got " +
                                             std::to_string(bias.token));
    }
    if (std::isnan(bias.bias)) return invalid_field("logit_bias", "logit_bias values must be numbers");
  }
  return {};
}

Result<void> check_prompt(const std::vector<Token>& prompt, const RequestLimits& limits) {
  if (prompt.empty()) return invalid_field("prompt", "prompt must hold at least one token");
  const auto valid = [&limits](Token token) { return token >= 0 && token < limits.vocabulary; };
  if (!std::all_of(prompt.begin(), prompt.end(), valid)) {
    return invalid_field("prompt", "prompt token ids must be between 0 and " + std::to_string(limits.vocabulary - 1));
  }
  if (prompt.size() >= static_cast<std::size_t>(limits.context)) {
    return Error{ErrorCode::context_too_long,
                 "the prompt has " + std::to_string(prompt.size()) + " tokens; the context of a slot holds " +
                     std::to_string(limits.context) + ", and at least one is needed for the answer",
                 "prompt"};
  }
  return {};
}

Result<void> check_stops(const std::vector<std::string>& stops, const RequestLimits& limits) {
  if (stops.size() > limits.stops_max) {
    return invalid_field("stop", "stop may have at most " + std::to_string(limits.stops_max) + " strings");
  }
  for (const std::string& stop : stops) {
    if (stop.empty()) return invalid_field("stop", "stop strings must not be empty");
    if (!is_valid_utf8(stop)) return invalid_field("stop", "stop strings must be valid UTF-8");
    if (stop.size() > limits.stop_bytes_max) {
      return invalid_field("stop", "stop strings may have at most " + std::to_string(limits.stop_bytes_max) + " bytes");
    }
  }
  return {};
}

std::uint32_t random_seed() {
  thread_local std::random_device device;
  return device();
}

// Longest answer and time that a client may ask for; more is a mistake rather than a wish.
constexpr std::int64_t kMaxTokensLimit = 1 << 30;
constexpr std::int64_t kTimeoutLimitMs = 24LL * 3600 * 1000;

}  // namespace

Result<RequestPtr> make_request(RequestId id, RequestDraft draft, const RequestLimits& limits, TimePoint now) {
  if (auto ok = check_prompt(draft.prompt, limits); !ok) return ok.error();
  if (auto ok = check_sampling(draft.sampling, limits); !ok) return ok.error();
  if (auto ok = check_stops(draft.stop, limits); !ok) return ok.error();
  if (draft.max_tokens && (*draft.max_tokens < -1 || *draft.max_tokens > kMaxTokensLimit)) {
    return invalid_field("max_tokens",
                         "max_tokens must be between -1 (no limit) and " + std::to_string(kMaxTokensLimit));
  }
  if (draft.timeout_ms && (*draft.timeout_ms < 1 || *draft.timeout_ms > kTimeoutLimitMs)) {
    return invalid_field("timeout_ms", "timeout_ms must be between 1 and " + std::to_string(kTimeoutLimitMs));
  }

  auto request = std::make_shared<Request>();
  request->id = id;
  request->prompt = std::move(draft.prompt);
  request->sampling = std::move(draft.sampling);
  if (!request->sampling.seed) request->sampling.seed = random_seed();
  request->stop = std::move(draft.stop);
  request->arrival = now;
  request->service_class = draft.service_class;
  request->tenant = draft.tenant;
  request->special_pieces = draft.special_pieces;
  request->use_cache = draft.use_cache;
  request->pin = draft.pin;
  request->keep_tokens = draft.keep_tokens;
  request->traced = draft.traced;

  const std::int64_t room = limits.context - static_cast<std::int64_t>(request->prompt.size());
  const std::int64_t wanted = draft.max_tokens.value_or(limits.max_tokens_default);
  request->limited_by_context = wanted < 0 || wanted > room;
  request->max_tokens = static_cast<TokenCount>(request->limited_by_context ? room : wanted);

  if (draft.timeout_ms) {
    request->deadline = now + milliseconds(*draft.timeout_ms);
  } else if (limits.timeout_default > Duration::zero()) {
    request->deadline = now + limits.timeout_default;
  }
  return RequestPtr(std::move(request));
}

}  // namespace chasqui
