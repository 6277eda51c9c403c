#include "core/request.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/random_bits.h"
#include "base/utf8.h"
#include "core/checkpoints.h"

namespace chasqui {
namespace {

std::string shown(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

constexpr std::size_t kBreakersMax = 32;

// Rows that see each other are computed in one batch.
Result<void> check_media(const RequestDraft& draft, const RequestLimits& limits) {
  if (!draft.media) return {};
  if (draft.tell_prompt) {
    return invalid_field("logprobs", "logprobs of the prompt are not told where it has pictures or sounds");
  }
  for (const MediaUnit& unit : *draft.media) {
    if (unit.causal || unit.positions <= limits.rows_max) continue;
    return invalid_field("messages", "a picture takes " + std::to_string(unit.positions) +
                                         " positions, which this model computes in one batch; a batch has at most " +
                                         std::to_string(limits.rows_max) + " (--batch-size)");
  }
  return {};
}

Result<void> check_prompt(const RequestDraft& draft, const RequestLimits& limits) {
  const std::vector<Token>& prompt = draft.prompt;
  if (prompt.empty()) return invalid_field("prompt", "prompt must hold at least one token");
  if (!fits_prompt(draft.media, prompt, limits.vocabulary)) {
    return invalid_field("prompt", "prompt token ids must be between 0 and " + std::to_string(limits.vocabulary - 1));
  }
  if (prompt.size() >= static_cast<std::size_t>(limits.context)) {
    return prompt_too_long(prompt.size(), limits.context, std::to_string(prompt.size()) + " tokens");
  }
  return check_media(draft, limits);
}

Result<void> check_stops(const std::vector<std::string>& stops, const RequestLimits& limits) {
  if (stops.size() > limits.stops_max) {
    return invalid_field("stop", "stop may have at most " + std::to_string(limits.stops_max) + " strings");
  }
  std::size_t bytes = 0;
  for (const std::string& stop : stops) {
    bytes += stop.size();
    if (stop.empty()) return invalid_field("stop", "stop strings must not be empty");
    if (!is_valid_utf8(stop)) return invalid_field("stop", "stop strings must be valid UTF-8");
    if (stop.size() > limits.stop_bytes_max) {
      return invalid_field("stop", "stop strings may have at most " + std::to_string(limits.stop_bytes_max) + " bytes");
    }
  }
  if (bytes > limits.stops_bytes_max) {
    return invalid_field("stop", "stop may have at most " + std::to_string(limits.stops_bytes_max) +
                                     " bytes in all of its strings together");
  }
  return {};
}

Result<void> check_stop_tokens(const std::vector<Token>& tokens, const RequestLimits& limits) {
  if (tokens.size() > limits.stop_tokens_max) {
    return invalid_field("stop_token_ids",
                         "stop_token_ids may have at most " + std::to_string(limits.stop_tokens_max) + " entries");
  }
  for (const Token token : tokens) {
    if (token < 0 || token >= limits.vocabulary) {
      return invalid_field("stop_token_ids",
                           "stop_token_ids must be between 0 and " + std::to_string(limits.vocabulary - 1));
    }
  }
  return {};
}

// What has an answer of so many tokens, with at least one that is new, in one piece of the context.
Result<void> check_begun(const RequestDraft& draft, const RequestLimits& limits) {
  if (draft.begun.empty()) return {};
  if (draft.sampling.chances >= 0 || draft.tell_prompt) {
    return invalid_field("begun", "an answer whose logprobs are told cannot go on elsewhere");
  }
  for (const Token token : draft.begun) {
    if (token < 0 || token >= limits.vocabulary) {
      return invalid_field("begun", "begun token ids must be between 0 and " + std::to_string(limits.vocabulary - 1));
    }
    const auto is_it = [token](const std::vector<Token>& ends) { return std::ranges::find(ends, token) != ends.end(); };
    if (!is_it(limits.end_tokens) && !is_it(draft.stop_tokens)) continue;
    return invalid_field("begun", "begun holds token " + std::to_string(token) + ", which ends an answer");
  }
  if (draft.prompt.size() + draft.begun.size() >= static_cast<std::size_t>(limits.context)) {
    return invalid_field("begun", "the prompt (" + std::to_string(draft.prompt.size()) + " tokens) and begun (" +
                                      std::to_string(draft.begun.size()) + ") must leave room in the context of " +
                                      std::to_string(limits.context) + " tokens");
  }
  return {};
}

// Longest answer and time that a client may ask for; more is a mistake rather than a wish.
constexpr std::int64_t kMaxTokensLimit = 1 << 30;
constexpr std::int64_t kTimeoutLimitMs = 24LL * 3600 * 1000;

void take_adapters(Request& request, const RequestDraft& draft) {
  if (draft.adapters) request.adapter_leases = draft.adapters->leases;
  request.adapters = without_leases(draft.adapters);
}

void make_deterministic(Request& request) {
  request.deterministic = true;
  request.adapters = make_alone(request.adapters, request.id.value);
  request.draft_tokens_max = 0;
  request.checkpoints = fixed_chunks(static_cast<TokenCount>(request.prompt.size()));
  std::erase_if(request.checkpoints, [&request](TokenCount at) { return whole_units(request.media, at) != at; });
}

// A state is kept where a picture or a sound begins, not inside it.
void set_checkpoints(Request& request, const RequestDraft& draft, const RequestLimits& limits) {
  if (!request.use_cache || limits.checkpoint_every <= 0) return;
  const auto tokens = static_cast<TokenCount>(request.prompt.size());
  request.checkpoints = plan_checkpoints(draft.boundaries, tokens, limits.checkpoint_every, limits.checkpoint_least,
                                         limits.checkpoints_max);
  if (!request.media) return;
  for (TokenCount& at : request.checkpoints) at = whole_units(request.media, at);
  const auto again = std::unique(request.checkpoints.begin(), request.checkpoints.end());
  request.checkpoints.erase(again, request.checkpoints.end());
  std::erase(request.checkpoints, 0);
}

void set_deadlines(Request& request, const RequestDraft& draft, const RequestLimits& limits, TimePoint now) {
  if (draft.timeout_ms) {
    request.deadline = now + milliseconds(*draft.timeout_ms);
  } else if (limits.timeout_default > Duration::zero()) {
    request.deadline = now + limits.timeout_default;
  }
  request.prompt_deadline = request.deadline;
  if (limits.queue_timeout > Duration::zero()) request.start_deadline = now + limits.queue_timeout;
  if (draft.ttft_ms) request.first_token_deadline = now + milliseconds(*draft.ttft_ms);
}

// llama-server's rule. A session is what its model has seen and said, so nothing is taken out of it.
void plan_shifts(Request& request, const RequestDraft& draft, const RequestLimits& limits) {
  constexpr TokenCount kLeast = 4;      // tokens of a context that are not kept
  constexpr TokenCount kPartGone = 64;  // of a context, at least one in so many goes: all steps wait for a shift
  if (limits.context <= kLeast) return;
  const std::int64_t keep = draft.keep.value_or(limits.keep_default);
  const std::int64_t kept = keep < 0 ? static_cast<std::int64_t>(request.prompt.size()) : keep;
  const std::int64_t most = limits.context - kLeast;
  request.shift_at = limits.context;
  request.keep = static_cast<TokenCount>(std::min(std::min(kept, most) + limits.begin_tokens, most));
  const std::int64_t discard = draft.discard.value_or(0);
  if (discard == 0) return;
  request.discard =
      static_cast<TokenCount>(std::clamp<std::int64_t>(discard, limits.context / kPartGone, limits.context));
}

}  // namespace

Error prompt_too_long(std::size_t tokens, TokenCount context, std::string_view size) {
  const std::string most = std::to_string(context);
  Error error{ErrorCode::context_too_long,
              "the prompt (" + std::string(size) + ") exceeds the available context size (" + most +
                  " tokens): this model's maximum context length is " + most +
                  " tokens, and at least one is needed for the answer",
              "prompt"};
  error.prompt_tokens = static_cast<std::int64_t>(tokens);
  error.context_tokens = context;
  return error;
}

Result<void> check_sampling(const SamplingParams& sampling, const RequestLimits& limits) {
  for (const SamplingRule& rule : sampling_rules()) {
    const double value = rule.read(sampling);
    // A limit that is no float is compared as the float next to it. NaN fails both.
    const bool low = !(value >= rule.minimum) && !(static_cast<float>(value) >= static_cast<float>(rule.minimum));
    const bool high = !(value <= rule.maximum) && !(static_cast<float>(value) <= static_cast<float>(rule.maximum));
    if (low || high) {
      return invalid_field(std::string(rule.field), std::string(rule.field) + " must be a number between " +
                                                        shown(rule.minimum) + " and " + shown(rule.maximum));
    }
  }
  if (sampling.chances > limits.chances_max) {
    return invalid_field("logprobs",
                         "at most " + std::to_string(limits.chances_max) + " likely tokens are told with each token");
  }
  if (sampling.dry_sequence_breakers.size() > kBreakersMax) {
    return invalid_field("dry_sequence_breakers",
                         "dry_sequence_breakers may have at most " + std::to_string(kBreakersMax) + " strings");
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

std::uint32_t random_seed() { return static_cast<std::uint32_t>(RandomBits{}()); }

Result<void> check_draft(const RequestDraft& draft, const RequestLimits& limits) {
  if (auto ok = check_prompt(draft, limits); !ok) return ok.error();
  if (auto ok = check_sampling(draft.sampling, limits); !ok) return ok.error();
  if (auto ok = check_stops(draft.stop, limits); !ok) return ok.error();
  if (draft.max_tokens && (*draft.max_tokens < -1 || *draft.max_tokens > kMaxTokensLimit)) {
    return invalid_field("max_tokens",
                         "max_tokens must be between -1 (no limit) and " + std::to_string(kMaxTokensLimit));
  }
  if (auto ok = check_stop_tokens(draft.stop_tokens, limits); !ok) return ok.error();
  if (auto ok = check_begun(draft, limits); !ok) return ok.error();
  if (draft.slot_label < -1 || draft.slot_label >= limits.slots) {
    return invalid_field("id_slot", "id_slot must be a slot between 0 and " + std::to_string(limits.slots - 1) +
                                        ", or -1; got " + std::to_string(draft.slot_label));
  }
  for (const auto& [field, value] : {std::pair{"timeout_ms", draft.timeout_ms},
                                     {"t_max_prompt_ms", draft.prompt_ms},
                                     {"t_max_predict_ms", draft.predict_ms},
                                     {"ttft_timeout_ms", draft.ttft_ms}}) {
    if (value && (*value < 1 || *value > kTimeoutLimitMs)) {
      return invalid_field(field, std::string(field) + " must be between 1 and " + std::to_string(kTimeoutLimitMs));
    }
  }
  return {};
}

Result<RequestPtr> make_request(RequestId id, RequestDraft draft, const RequestLimits& limits, TimePoint now) {
  if (auto ok = check_draft(draft, limits); !ok) return ok.error();

  auto request = std::make_shared<Request>();
  request->id = id;
  request->prompt = std::move(draft.prompt);
  request->begun = std::move(draft.begun);
  request->media = std::move(draft.media);
  request->sampling = std::move(draft.sampling);
  if (!request->sampling.seed) request->sampling.seed = draft.deterministic ? 0 : random_seed();
  request->stop = std::move(draft.stop);
  request->arrival = now;
  request->service_class = draft.service_class;
  request->tenant = draft.tenant;
  request->group = draft.group;
  request->ttft_target = draft.ttft_target;
  request->tpot_target = draft.tpot_target;
  request->special_pieces = draft.special_pieces;
  request->shown_tokens = std::move(draft.shown_tokens);
  request->tell_prompt = draft.tell_prompt;
  request->use_cache = draft.use_cache && !draft.tell_prompt;
  set_checkpoints(*request, draft, limits);
  request->slot_label = draft.slot_label;
  request->pin = draft.pin;
  request->keep_tokens = draft.keep_tokens;
  take_adapters(*request, draft);
  request->stop_tokens = std::move(draft.stop_tokens);
  request->indent_min = draft.indent_min;
  request->parts = std::move(draft.parts);
  request->draft_tokens_max = draft.draft_tokens_max;
  request->tell_usage = draft.tell_usage;
  request->returns = draft.returns;
  request->tell_cache = draft.tell_cache;
  request->tell_progress = draft.tell_progress;
  if (draft.ping_seconds) {
    constexpr std::int64_t kNeverSeconds = 365 * 86400;
    const std::int64_t wanted = *draft.ping_seconds;
    request->ping_every = seconds(wanted > 0 ? std::min(wanted, kNeverSeconds) : kNeverSeconds);
  }
  if (draft.predict_ms) request->predict_limit = milliseconds(*draft.predict_ms);
  request->traced = draft.traced;
  request->dropped_keywords = std::move(draft.dropped_keywords);
  if (draft.deterministic) make_deterministic(*request);

  if (limits.moves_text && !request->media && request->use_cache && !request->deterministic && request->pin == 0) {
    constexpr std::int64_t kMost = std::numeric_limits<TokenCount>::max();
    request->chunk = static_cast<TokenCount>(std::min(draft.chunk.value_or(limits.chunk_default), kMost));
  }
  if (limits.shifts && !request->media && !request->deterministic && !request->tell_prompt && request->pin == 0) {
    plan_shifts(*request, draft, limits);
  }
  const std::int64_t room =
      request->shift_at > 0 ? kMaxTokensLimit : limits.context - static_cast<std::int64_t>(request->prompt.size());
  const std::int64_t wanted = draft.max_tokens.value_or(limits.max_tokens_default);
  request->limited_by_context = wanted < 0 || wanted > room;
  request->max_tokens = static_cast<TokenCount>(request->limited_by_context ? room : wanted);
  if (!request->begun.empty() && std::ssize(request->begun) >= request->max_tokens) {
    return invalid_field("begun", "begun must have fewer than max_tokens (" + std::to_string(request->max_tokens) +
                                      ") tokens; got " + std::to_string(request->begun.size()));
  }

  set_deadlines(*request, draft, limits, now);
  return RequestPtr(std::move(request));
}

}  // namespace chasqui
