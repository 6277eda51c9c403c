#include "model/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/repetition_steps.h"

namespace chasqui {
namespace {

constexpr std::size_t kFew = 512;

// Mirostat comes instead of all steps but the temperature.
SamplingParams params_in_effect(SamplingParams params) {
  if (params.mirostat != 2) return params;
  params.top_k = 0;
  params.top_p = 1;
  params.min_p = 0;
  params.top_n_sigma = -1;
  params.min_keep = 0;
  params.repeat_last_n = 0;
  params.steps = std::vector{SamplingStep::temperature};
  return params;
}

float most_likely_logit(const std::vector<Candidate>& candidates) {
  return std::ranges::max_element(candidates, {}, &Candidate::logit)->logit;
}

// Sets probability to exp(logit / temperature) relative to the largest logit, so nothing overflows, whatever the
// logits and the temperature are. Returns the sum.
double weigh(std::vector<Candidate>& candidates, double top, double temperature, LogitRow& row,
             std::vector<float>& list) {
  double sum = 0;
  if (candidates.size() > kFew) {
    list.resize(candidates.size());
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = candidates[i].logit;
    const std::span<const float> weights = row.weights(list, LogitRow::scale_of(temperature));
    for (std::size_t i = 0; i < list.size(); ++i) {
      sum += candidates[i].probability = static_cast<double>(weights[i]);
    }
    return sum;
  }
  for (Candidate& c : candidates) sum += c.probability = std::exp((c.logit - top) / temperature);
  return sum;
}

void keep_most_likely(std::vector<Candidate>& candidates, std::size_t count) {
  if (count >= candidates.size()) return;
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(candidates.begin(), end, candidates.end(), more_likely);
  candidates.erase(end, candidates.end());
}

// Keeps the most likely candidates whose weights add up to `mass`, and `least` of them at least.
void keep_mass(std::vector<Candidate>& candidates, float top, double mass, std::size_t least) {
  const std::size_t count = count_for_mass(candidates, top, mass);
  if (count < least) return keep_most_likely(candidates, least);
  candidates.resize(count);
}

// 53 random bits in [0, 1), the same with every standard library (std::generate_canonical is not).
double uniform(std::mt19937& generator) {
  const std::uint64_t high = generator() >> 5;
  const std::uint64_t low = generator() >> 6;
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

}  // namespace

Sampler::Sampler(const SamplingParams& params, TokenCount vocabulary, std::span<const Token> end_of_generation,
                 SamplingParts* parts)
    : params_(params_in_effect(params)),
      vocabulary_(vocabulary),
      ends_(end_of_generation.begin(), end_of_generation.end()),
      bias_(params.logit_bias),
      penalties_(penalties_on(params_)),
      generator_(params.seed.value_or(std::mt19937::default_seed)),
      surprise_max_(2 * static_cast<double>(params.mirostat_tau)),
      window_(params_.repeat_last_n) {
  if (params.ignore_eos) {
    for (Token token : end_of_generation) bias_.push_back({token, LogitRow::kBanned});
  }
  for (const LogitBias& b : bias_) CHECK(b.token >= 0 && b.token < vocabulary);
  if (auto* own = dynamic_cast<LlamaSamplingParts*>(parts)) {
    chain_ = std::move(own->chain);
    grammar_ = std::move(own->grammar);
  }
  if (!chain_.present()) return;
  penalties_ = false;  // they are one of its steps
  steps_ = RowSteps::of(params_);
}

void Sampler::accept(Token token) {
  if (penalties_) window_.push(token);
  if (chain_.present()) chain_.accept(token);
  if (grammar_.present() && allowed_) grammar_.accept(token);
  ++generated_;
}

void Sampler::follow(Token token) {
  allowed_ = !grammar_.present() || grammar_.allows(token);
  accept(token);
}

void Sampler::skip_draws(std::size_t tokens) {
  if (!greedy() && !chain_.present()) generator_.discard(2 * tokens);
}

std::span<const Token> Sampler::forced(Token last) const {
  if (!allowed_ || params_.chances >= 0) return {};
  const std::span<const Token> tokens = grammar_.forced(last);
  if (tokens.empty() || params_.logit_bias.empty()) return tokens;
  const auto weighed = [this](Token token) {
    return std::ranges::find(params_.logit_bias, token, &LogitBias::token) != params_.logit_bias.end();
  };
  return tokens.first(static_cast<std::size_t>(std::ranges::find_if(tokens, weighed) - tokens.begin()));
}

// Places of pictures and sounds are no tokens that could be repeated.
void Sampler::accept(std::span<const Token> tokens) {
  if (chain_.present()) {
    for (const Token token : tokens) {
      if (token >= 0) chain_.accept(token);
    }
  }
  if (!penalties_) return;
  // Only the end of a long prompt can still be in the window after it.
  std::size_t first = params_.repeat_last_n > 0 ? tokens.size() : 0;
  for (std::int32_t room = params_.repeat_last_n; room > 0 && first > 0; --first) {
    if (tokens[first - 1] >= 0) --room;
  }
  for (const Token token : tokens.subspan(first)) {
    if (token >= 0) window_.push(token);
  }
}

void Sampler::adjust(std::span<float> logits) const {
  for (const LogitBias& b : bias_) logits[static_cast<std::size_t>(b.token)] += b.bias;
  if (generated_ < params_.min_tokens) {
    for (const Token token : ends_) logits[static_cast<std::size_t>(token)] = LogitRow::kBanned;
  }
  if (!penalties_) return;
  for (const auto& [token, count] : window_.counts()) {
    float& logit = logits[static_cast<std::size_t>(token)];
    // Dividing a negative logit would make the token more likely.
    logit = logit <= 0 ? logit * params_.repeat_penalty : logit / params_.repeat_penalty;
    logit -= static_cast<float>(count) * params_.frequency_penalty + params_.presence_penalty;
  }
}

bool Sampler::adjusts() const {
  return !bias_.empty() || generated_ < params_.min_tokens || (penalties_ && !window_.counts().empty());
}

// A list of candidates is quicker than sweeps over the row.
bool Sampler::few_candidates() const {
  constexpr TokenCount kFewOfAll = 256;
  constexpr TokenCount kFewOfTopK = 512;
  return vocabulary_ <= kFewOfAll || (params_.top_k > 0 && params_.top_k <= kFewOfTopK && params_.top_k < vocabulary_);
}

// Leaves the candidates that may be drawn, with their probabilities, in no particular order. Both top-p and min-p
// keep a beginning of the sorted candidates, so the shorter one counts.
void Sampler::build(SamplerScratch& scratch) const {
  std::vector<Candidate>& candidates = scratch.candidates;
  if (few_candidates()) {
    scratch.row.top_k(static_cast<std::size_t>(params_.top_k > 0 ? params_.top_k : vocabulary_), candidates);
    const float bound = candidates.empty() ? LogitRow::kLeast : sigma_bound(scratch.row);
    if (bound > LogitRow::kLeast) std::erase_if(candidates, [bound](const Candidate& c) { return c.logit < bound; });
  } else if (scratch.row.largest() >= 0) {
    const float least = narrow_by_top_k(scratch.row, sigma_bound(scratch.row), scratch);
    scratch.row.at_least(narrow(scratch.row, least, scratch), candidates);
  } else {
    candidates.clear();
  }
  if (candidates.empty()) {
    candidates.push_back({fallback(), 0.0f, 1.0});
    return;
  }
  const float top = most_likely_logit(candidates);
  if (few_candidates() && params_.top_p < 1.0f) {
    const double target = weigh(candidates, top, 1.0, scratch.row, scratch.logits) * static_cast<double>(params_.top_p);
    if (!(weight_of_min_p(candidates, top) < target)) keep_mass(candidates, top, target, keep_min());
  }
  if (few_candidates() && params_.min_p > 0.0f) {
    const float bound = min_p_bound(top);
    const auto count = std::ranges::count_if(candidates, [&](const Candidate& c) { return c.logit >= bound; });
    if (static_cast<std::size_t>(count) < keep_min()) {
      keep_most_likely(candidates, keep_min());
    } else {
      std::erase_if(candidates, [&](const Candidate& c) { return !(c.logit >= bound); });
      // In an order that does not come from those that are left out: what is drawn depends on it.
      if (candidates.size() <= kFew) std::ranges::sort(candidates, more_likely);
    }
  }
  const double sum = weigh(candidates, top, params_.temperature, scratch.row, scratch.logits);
  for (Candidate& c : candidates) c.probability /= sum;
}

// What those that min-p leaves weigh; without it all of them, and more. Where that is less than top-p leaves, min-p
// alone counts.
double Sampler::weight_of_min_p(const std::vector<Candidate>& candidates, float top) const {
  if (!(params_.min_p > 0.0f)) return std::numeric_limits<double>::infinity();
  const float bound = min_p_bound(top);
  double sum = 0;
  for (const Candidate& c : candidates) sum += c.logit >= bound ? c.probability : 0;
  return sum;
}

// The least logit of a candidate that is min_p times as likely as the most likely one.
float Sampler::min_p_bound(float top) const {
  return std::min(top, std::numeric_limits<float>::max()) + std::log(params_.min_p);
}

// The least logit that top-n-sigma leaves. REQUIRES: a row with a largest logit
float Sampler::sigma_bound(const LogitRow& row) const {
  if (!(params_.top_n_sigma > 0)) return LogitRow::kLeast;
  const double bound = row.top() - static_cast<double>(params_.top_n_sigma) * row.deviation();
  constexpr auto kLeast = static_cast<double>(LogitRow::kLeast);
  return bound > kLeast ? static_cast<float>(bound) : LogitRow::kLeast;
}

Token Sampler::fallback() const {
  for (Token token = 0; token < vocabulary_; ++token) {
    const auto bans = [token](const LogitBias& b) { return b.token == token && b.bias == LogitRow::kBanned; };
    if (std::ranges::none_of(bias_, bans)) return token;
  }
  return 0;
}

Token Sampler::sample(std::span<float> logits, SamplerScratch& scratch, std::vector<TokenChance>* chances) {
  DCHECK(static_cast<TokenCount>(logits.size()) == vocabulary_);
  const bool tells = chances != nullptr && params_.chances >= 0;
  const bool tells_raw = tells && !params_.chances_after;
  if (tells_raw) {
    scratch.row.look(logits);
    note_chances(scratch);
  }
  scratch.cut.forget();
  const bool adjusted = adjusts();
  if (adjusted) adjust(logits);
  if (adjusted || !tells_raw) scratch.row.look(logits);
  Token token = put_off_ > 0 ? kPutOff : draw(scratch);
  // Most tokens of a model that knows what is wanted pass; looking at all the others is for those that do not.
  allowed_ = true;
  if (put_off_ > 0 || (grammar_.present() && !grammar_.allows(token))) token = draw_allowed(logits, scratch);
  if (token == kPutOff) return token;
  if (tells_raw) tell_chances(token, logits, scratch, *chances);
  if (tells && !tells_raw) tell_drawn_chances(token, scratch, *chances);
  return token;
}

// Leaves in `scratch` what the token was drawn from, unless it was greedy: see SamplerScratch::drew_row.
Token Sampler::draw(SamplerScratch& scratch) {
  scratch.drew_row = false;
  LogitRow& row = scratch.row;
  if (chain_.present()) {
    const bool listed = list_for_chain(scratch);
    if (!listed && steps_ && row.largest() >= 0) return draw_in_steps(scratch, uniform(generator_));
    const Token token =
        listed ? chain_.draw(scratch.candidates, scratch.candidates) : chain_.draw(row.logits(), scratch.candidates);
    return token >= 0 ? token : fallback();
  }
  if (greedy() || row.largest() < 0) {
    scratch.candidates.clear();
    return row.largest() >= 0 ? row.largest() : fallback();
  }
  if (params_.mirostat == 2) return draw_mirostat(scratch, uniform(generator_));
  if (few_candidates()) return draw_candidate(scratch);
  const double drawn = uniform(generator_);
  const float bound = sigma_bound(row);
  return lists_top_k(row) ? draw_of_top_k(scratch, bound, drawn) : draw_row(row, bound, scratch, drawn);
}

Token Sampler::draw_candidate(SamplerScratch& scratch) {
  build(scratch);
  double left = uniform(generator_);
  for (const Candidate& c : scratch.candidates) {
    left -= c.probability;
    if (left < 0) return c.token;
  }
  // Rounding may leave a rest; the most likely candidate takes it.
  return std::ranges::min_element(scratch.candidates, more_likely)->token;
}

std::span<const Candidate> Sampler::distribution(std::span<float> logits, SamplerScratch& scratch) const {
  adjust(logits);
  std::vector<Candidate>& candidates = scratch.candidates;
  scratch.cut.forget();
  scratch.row.look(logits);
  if (greedy()) {
    const Token token = scratch.row.largest();
    candidates.assign(1, {token >= 0 ? token : fallback(), 0.0f, 1.0});
    if (token >= 0) candidates.front().logit = logits[static_cast<std::size_t>(token)];
  } else {
    build(scratch);
    std::ranges::sort(candidates, more_likely);
  }
  return candidates;
}

}  // namespace chasqui
