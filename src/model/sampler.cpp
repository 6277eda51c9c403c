#include "model/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace chasqui {
namespace {

bool penalties_on(const SamplingParams& p) {
  return p.repeat_last_n != 0 &&
         (p.repeat_penalty != 1.0f || p.frequency_penalty != 0.0f || p.presence_penalty != 0.0f);
}

float most_likely_logit(const std::vector<Candidate>& candidates) {
  return std::ranges::max_element(candidates, {}, &Candidate::logit)->logit;
}

float scale_of(double temperature) {
  constexpr double kSteepest = 1e30;
  return static_cast<float>(std::min(1 / temperature, kSteepest));
}

// Sets probability to exp(logit / temperature) relative to the largest logit, so nothing overflows, whatever the
// logits and the temperature are. Returns the sum.
double weigh(std::vector<Candidate>& candidates, double top, double temperature, LogitRow& row,
             std::vector<float>& list) {
  constexpr std::size_t kFew = 512;
  double sum = 0;
  if (candidates.size() > kFew) {
    list.resize(candidates.size());
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = candidates[i].logit;
    const std::span<const float> weights = row.weights(list, scale_of(temperature));
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
    : params_(params),
      vocabulary_(vocabulary),
      ends_(end_of_generation.begin(), end_of_generation.end()),
      bias_(params.logit_bias),
      penalties_(penalties_on(params)),
      generator_(params.seed.value_or(std::mt19937::default_seed)),
      window_(params.repeat_last_n) {
  if (params.ignore_eos) {
    for (Token token : end_of_generation) bias_.push_back({token, LogitRow::kBanned});
  }
  for (const LogitBias& b : bias_) CHECK(b.token >= 0 && b.token < vocabulary);
  if (auto* own = dynamic_cast<LlamaSamplingParts*>(parts)) {
    chain_ = std::move(own->chain);
    grammar_ = std::move(own->grammar);
  }
  if (chain_.present()) penalties_ = false;  // they are one of its steps
}

void Sampler::accept(Token token) {
  if (penalties_) window_.push(token);
  if (chain_.present()) chain_.accept(token);
  if (grammar_.present() && allowed_) grammar_.accept(token);
  ++generated_;
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

void Sampler::accept(std::span<const Token> tokens) {
  if (chain_.present()) {
    for (const Token token : tokens) chain_.accept(token);
  }
  if (!penalties_) return;
  // Only the end of a long prompt can still be in the window after it.
  if (params_.repeat_last_n > 0 && tokens.size() > static_cast<std::size_t>(params_.repeat_last_n)) {
    tokens = tokens.last(static_cast<std::size_t>(params_.repeat_last_n));
  }
  for (Token token : tokens) window_.push(token);
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
  constexpr TokenCount kFew = 256;
  constexpr TokenCount kFewOfTopK = 8192;
  return vocabulary_ <= kFew || (params_.top_k > 0 && params_.top_k <= kFewOfTopK && params_.top_k < vocabulary_);
}

// Leaves the candidates that may be drawn, with their probabilities, in no particular order. Both top-p and min-p
// keep a beginning of the sorted candidates, so the shorter one counts.
void Sampler::build(SamplerScratch& scratch) const {
  std::vector<Candidate>& candidates = scratch.candidates;
  if (few_candidates()) {
    list_top_k(scratch);
  } else if (scratch.row.largest() >= 0) {
    const float least = narrow(scratch);
    scratch.row.at_least(least, candidates);
  } else {
    candidates.clear();
  }
  if (candidates.empty()) {
    candidates.push_back({fallback(), 0.0f, 1.0});
    return;
  }
  const float top = most_likely_logit(candidates);
  if (few_candidates() && params_.top_p < 1.0f) {
    const double all = weigh(candidates, top, 1.0, scratch.row, scratch.logits);
    keep_mass(candidates, top, all * static_cast<double>(params_.top_p), keep_min());
  }
  if (few_candidates() && params_.min_p > 0.0f) {
    const float bound = min_p_bound(top);
    const auto count = std::ranges::count_if(candidates, [&](const Candidate& c) { return c.logit >= bound; });
    keep_most_likely(candidates, std::max(static_cast<std::size_t>(count), keep_min()));
  }
  const double sum = weigh(candidates, top, params_.temperature, scratch.row, scratch.logits);
  for (Candidate& c : candidates) c.probability /= sum;
}

// Which logit is the least that may be drawn; what is as likely as that and too much is banned in the row.
// REQUIRES: a row with a largest logit
float Sampler::narrow(SamplerScratch& scratch) const {
  LogitRow& row = scratch.row;
  const float least = narrow_by_top_k(scratch);
  constexpr Token kAll = std::numeric_limits<Token>::max();
  Candidate last{kAll, least, 0.0};
  if (params_.top_p < 1.0f) {
    const double all = row.mass(least, 1.0f);
    last = scratch.cut.reach(row, least, 1.0f, all, all * static_cast<double>(params_.top_p));
  }
  const float bound = params_.min_p > 0.0f ? min_p_bound(row.top()) : least;
  if (bound > last.logit) last = {kAll, bound, 0.0};
  if (keep_min() > 1) {
    row.top_k(keep_min(), scratch.candidates);
    Candidate kept = *std::ranges::max_element(scratch.candidates, more_likely);
    if (kept.logit < least) kept = {kAll, least, 0.0};
    if (more_likely(last, kept)) last = kept;
  }
  if (last.token != kAll) scratch.cut.ban_after(row, last);
  return std::max(last.logit, LogitRow::kLeast);
}

// What blocks of the row say is enough for a few of them.
void Sampler::list_top_k(SamplerScratch& scratch) const {
  constexpr TokenCount kFew = 512;
  const TokenCount count = params_.top_k > 0 ? params_.top_k : vocabulary_;
  if (count <= kFew || vocabulary_ <= 2 * count || scratch.row.largest() < 0) {
    return scratch.row.top_k(static_cast<std::size_t>(count), scratch.candidates);
  }
  scratch.row.at_least(narrow_by_top_k(scratch), scratch.candidates);
}

float Sampler::narrow_by_top_k(SamplerScratch& scratch) const {
  if (params_.top_k <= 0 || params_.top_k >= vocabulary_) return LogitRow::kLeast;
  const auto all = static_cast<double>(vocabulary_);  // about: some may be banned
  const Candidate last = scratch.cut.reach(scratch.row, LogitRow::kLeast, 0.0f, all, params_.top_k);
  scratch.cut.ban_after(scratch.row, last);
  return last.logit;
}

// The least logit of a candidate that is min_p times as likely as the most likely one.
float Sampler::min_p_bound(float top) const {
  return std::min(top, std::numeric_limits<float>::max()) + std::log(params_.min_p);
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
  Token token = draw(scratch);
  // Most tokens of a model that knows what is wanted pass; looking at all the others is for those that do not.
  allowed_ = true;
  if (grammar_.present() && !grammar_.allows(token)) token = draw_allowed(logits, scratch);
  if (tells_raw) tell_chances(token, logits, scratch, *chances);
  if (tells && !tells_raw) tell_drawn_chances(token, scratch, *chances);
  return token;
}

// Leaves in `scratch` what the token was drawn from, unless it was greedy.
Token Sampler::draw(SamplerScratch& scratch) {
  scratch.drew_row = false;
  LogitRow& row = scratch.row;
  if (chain_.present()) {
    const Token token = chain_.draw(row.logits(), scratch.candidates);
    return token >= 0 ? token : fallback();
  }
  if (greedy() || row.largest() < 0) {
    scratch.candidates.clear();
    return row.largest() >= 0 ? row.largest() : fallback();
  }
  if (few_candidates()) return draw_candidate(scratch);
  scratch.drew_row = true;
  scratch.candidates.clear();  // those of another row would be taken for what this one was narrowed to
  scratch.least = narrow(scratch);
  scratch.mass = row.mass(scratch.least, scale_of(params_.temperature));
  return row.token_at(uniform(generator_) * scratch.mass);
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

Token Sampler::draw_allowed(std::span<float> logits, SamplerScratch& scratch) {
  // What narrowed the row for the first draw was not only for what the grammar allows.
  scratch.cut.take_back(scratch.row);
  if (const TokenMask* const mask = grammar_.mask()) {
    if (mask->whole && mask->bits.empty() && !chain_.present()) return draw_listed(mask->list, scratch);
    if (mask->whole && !mask->bits.empty()) {
      scratch.row.look(logits, mask->bits);
      return draw_masked(scratch);
    }
    const bool whole = mask->whole;
    scratch.mask = mask->bits;
    scratch.mask.resize((logits.size() + 63) / 64);
    for (const Token token : mask->list) add_token(scratch.mask, token);
    if (!whole) find_likely_allowed(scratch);
    scratch.row.look(logits, scratch.mask);
    return draw_masked(scratch);
  }
  ask_about_likely(scratch);
  if (scratch.allowed.empty()) return end_without_way();
  scratch.masked.assign(logits.size(), LogitRow::kBanned);
  for (const Candidate& c : scratch.allowed) scratch.masked[static_cast<std::size_t>(c.token)] = c.logit;
  scratch.row.look(scratch.masked);
  return draw_masked(scratch);
}

Token Sampler::draw_masked(SamplerScratch& scratch) {
  return scratch.row.largest() >= 0 ? draw(scratch) : end_without_way();
}

// To what a mask has so far: it was put off before all of the vocabulary had been looked at.
void Sampler::find_likely_allowed(SamplerScratch& scratch) const {
  constexpr std::size_t kAsked = 16;
  scratch.row.top_k(kAsked, scratch.allowed);
  grammar_.filter(scratch.allowed);
  for (const Candidate& c : scratch.allowed) add_token(scratch.mask, c.token);
}

// The grammar has no way on: the model's vocabulary cannot say what it wants, or the request has banned it.
Token Sampler::end_without_way() {
  allowed_ = false;
  return ends_.empty() ? fallback() : ends_.front();
}

// As from a row that has nothing else, without the row.
Token Sampler::draw_listed(std::span<const Token> list, SamplerScratch& scratch) {
  scratch.masked.clear();
  for (const Token token : list) scratch.masked.push_back(scratch.row[token]);
  scratch.row.look(scratch.masked);
  if (scratch.row.largest() < 0) return end_without_way();
  const Token drawn = draw(scratch);
  if (scratch.drew_row && params_.chances_after && params_.chances >= 0) list_drawn(drawn, scratch);
  scratch.drew_row = false;
  for (Candidate& c : scratch.candidates) c.token = list[static_cast<std::size_t>(c.token)];
  return list[static_cast<std::size_t>(drawn)];
}

// libllama's grammars take about a microsecond for each token that they are asked about, so the whole vocabulary is
// asked about only where nothing among the most likely tokens passes. Those that are less likely than all that was
// asked about are left out; where min-p or the greedy choice would have left them out anyway, that changes nothing.
void Sampler::ask_about_likely(SamplerScratch& scratch) const {
  constexpr std::size_t kFirst = 256;
  constexpr std::size_t kMost = 4096;
  std::vector<Candidate>& allowed = scratch.allowed;
  for (const std::size_t count : {kFirst, kMost, static_cast<std::size_t>(vocabulary_)}) {
    scratch.row.top_k(count, allowed);
    if (allowed.empty()) break;
    const bool whole = allowed.size() < count || count >= static_cast<std::size_t>(vocabulary_);
    const float least = std::ranges::min_element(allowed, {}, &Candidate::logit)->logit;
    grammar_.filter(allowed);
    if (whole || (count >= kMost && !allowed.empty())) break;
    if (allowed.empty()) continue;
    const bool cut = params_.min_p > 0.0f && params_.min_keep <= 1 && !chain_.present() &&
                     least < min_p_bound(most_likely_logit(allowed));
    if (greedy() || cut) break;
  }
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
