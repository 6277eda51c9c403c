#include "model/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace chasqui {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

bool penalties_on(const SamplingParams& p) {
  return p.repeat_last_n != 0 &&
         (p.repeat_penalty != 1.0f || p.frequency_penalty != 0.0f || p.presence_penalty != 0.0f);
}

float most_likely_logit(const std::vector<Candidate>& candidates) {
  return std::ranges::max_element(candidates, {}, &Candidate::logit)->logit;
}

// Sets probability to exp(logit / temperature) relative to the largest logit, so nothing overflows, whatever the
// logits and the temperature are. Returns the sum.
double weigh(std::vector<Candidate>& candidates, double top, double temperature) {
  double sum = 0;
  for (Candidate& c : candidates) sum += c.probability = std::exp((c.logit - top) / temperature);
  return sum;
}

double mass_of(std::span<const float> logits, double top) {
  double sum = 0;
  for (float logit : logits) {
    if (logit > kBanned) sum += std::exp(std::min(logit - top, 0.0));
  }
  return sum;
}

// How many of the most likely candidates it takes until their weights add up to `mass`. Halves the range in which the
// answer lies, so that a whole vocabulary is never sorted. Reorders.
std::size_t count_for_mass(std::span<Candidate> candidates, double mass) {
  constexpr std::size_t kSorted = 256;
  std::size_t begin = 0;  // everything before is taken and counted
  std::size_t end = candidates.size();
  while (end - begin > kSorted) {
    const std::size_t middle = begin + (end - begin) / 2;
    const auto at = [&](std::size_t i) { return candidates.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(begin), at(middle), at(end), more_likely);
    double half = 0;
    for (std::size_t i = begin; i < middle; ++i) half += candidates[i].probability;
    if (half >= mass) {
      end = middle;
    } else {
      mass -= half;
      begin = middle;
    }
  }
  std::ranges::sort(candidates.subspan(begin, end - begin), more_likely);
  for (; begin < end && mass > 0; ++begin) mass -= candidates[begin].probability;
  return begin;
}

void keep_most_likely(std::vector<Candidate>& candidates, std::size_t count) {
  if (count >= candidates.size()) return;
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(candidates.begin(), end, candidates.end(), more_likely);
  candidates.erase(end, candidates.end());
}

// Keeps the most likely candidates whose weights add up to `mass`, and `least` of them at least. Sums the weights by
// classes of about equal logits, so that only the class in which the mass is reached has to be sorted.
void keep_mass(std::vector<Candidate>& candidates, double top, double mass, std::size_t least) {
  constexpr std::size_t kClasses = 512;
  constexpr double kClassesForOne = 16;  // classes for a difference of 1 between logits
  const auto class_of = [top](const Candidate& c) {
    return static_cast<std::size_t>(std::min((top - c.logit) * kClassesForOne, double{kClasses - 1}));
  };
  std::array<double, kClasses> weights{};
  for (const Candidate& c : candidates) weights[class_of(c)] += c.probability;
  std::size_t last = 0;
  while (last + 1 < kClasses && weights[last] < mass) mass -= weights[last++];

  const auto above = std::ranges::partition(candidates, [&](const Candidate& c) { return class_of(c) < last; }).begin();
  const auto rest = std::partition(above, candidates.end(), [&](const Candidate& c) { return class_of(c) == last; });
  std::size_t count = static_cast<std::size_t>(above - candidates.begin());
  count += count_for_mass({above, rest}, mass);
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
      generator_(params.seed.value_or(std::mt19937::default_seed)) {
  if (params.ignore_eos) {
    for (Token token : end_of_generation) bias_.push_back({token, kBanned});
  }
  for (const LogitBias& b : bias_) CHECK(b.token >= 0 && b.token < vocabulary);
  if (auto* own = dynamic_cast<LlamaSamplingParts*>(parts)) {
    chain_ = std::move(own->chain);
    grammar_ = std::move(own->grammar);
  }
  if (chain_.present()) penalties_ = false;  // they are one of its steps
}

void Sampler::accept(Token token) {
  if (penalties_) remember(token);
  if (chain_.present()) chain_.accept(token);
  if (grammar_.present() && allowed_) grammar_.accept(token);
  ++generated_;
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
  for (Token token : tokens) remember(token);
}

void Sampler::remember(Token token) {
  ++counts_[token];
  if (params_.repeat_last_n < 0) return;
  if (window_.size() < static_cast<std::size_t>(params_.repeat_last_n)) {
    window_.push_back(token);
    return;
  }
  const auto forgotten = counts_.find(std::exchange(window_[oldest_], token));
  if (--forgotten->second == 0) counts_.erase(forgotten);
  oldest_ = (oldest_ + 1) % window_.size();
}

void Sampler::adjust(std::span<float> logits) const {
  for (const LogitBias& b : bias_) logits[static_cast<std::size_t>(b.token)] += b.bias;
  if (generated_ < params_.min_tokens) {
    for (const Token token : ends_) logits[static_cast<std::size_t>(token)] = kBanned;
  }
  if (!penalties_) return;
  for (const auto& [token, count] : counts_) {
    float& logit = logits[static_cast<std::size_t>(token)];
    // Dividing a negative logit would make the token more likely.
    logit = logit <= 0 ? logit * params_.repeat_penalty : logit / params_.repeat_penalty;
    logit -= static_cast<float>(count) * params_.frequency_penalty + params_.presence_penalty;
  }
}

// Leaves the candidates that may be drawn, with their probabilities, in no particular order. Both top-p and min-p
// keep a beginning of the sorted candidates, so the shorter one counts, and min-p, which needs no sorting, goes first;
// top-p still means its share of everything that was there before min-p.
void Sampler::build(std::span<const float> logits, std::vector<Candidate>& candidates) const {
  bool early = false;
  if (params_.top_k > 0 && params_.top_k < vocabulary_) {
    gather_top_k(logits, static_cast<std::size_t>(params_.top_k), candidates);
  } else {
    const Token top = largest(logits);
    early = top >= 0 && params_.min_p > 0.0f && params_.min_keep <= 1;
    gather_at_least(logits, early ? min_p_bound(logits[static_cast<std::size_t>(top)]) : kBanned, candidates);
  }
  if (candidates.empty()) {
    candidates.push_back({fallback(), 0.0f, 1.0});
    return;
  }
  const float top = most_likely_logit(candidates);
  if (params_.top_p < 1.0f) {
    const double seen = weigh(candidates, top, 1.0);
    const double all = early ? mass_of(logits, top) : seen;
    keep_mass(candidates, top, all * static_cast<double>(params_.top_p), keep_min());
  }
  if (params_.min_p > 0.0f) {
    const float bound = min_p_bound(top);
    const auto count = std::ranges::count_if(candidates, [&](const Candidate& c) { return c.logit >= bound; });
    keep_most_likely(candidates, std::max(static_cast<std::size_t>(count), keep_min()));
  }
  const double sum = weigh(candidates, top, params_.temperature);
  for (Candidate& c : candidates) c.probability /= sum;
}

// The least logit of a candidate that is min_p times as likely as the most likely one.
float Sampler::min_p_bound(float top) const {
  return std::min(top, std::numeric_limits<float>::max()) + std::log(params_.min_p);
}

Token Sampler::fallback() const {
  for (Token token = 0; token < vocabulary_; ++token) {
    const auto bans = [token](const LogitBias& b) { return b.token == token && b.bias == kBanned; };
    if (std::ranges::none_of(bias_, bans)) return token;
  }
  return 0;
}

Token Sampler::sample(std::span<float> logits, SamplerScratch& scratch, std::vector<TokenChance>* chances) {
  DCHECK(static_cast<TokenCount>(logits.size()) == vocabulary_);
  const bool tells = chances != nullptr && params_.chances >= 0;
  if (tells && !params_.chances_after) scratch.raw.assign(logits.begin(), logits.end());
  adjust(logits);
  Token token = draw(logits, scratch);
  // Most tokens of a model that knows what is wanted pass; looking at all the others is for those that do not.
  allowed_ = true;
  if (grammar_.present() && !grammar_.allows(token)) token = draw_allowed(logits, scratch);
  if (tells) tell_chances(token, scratch, *chances);
  return token;
}

// Leaves in scratch.candidates what the token was drawn from, with probabilities, unless it was greedy.
Token Sampler::draw(std::span<const float> logits, SamplerScratch& scratch) {
  if (chain_.present()) {
    const Token token = chain_.draw(logits, scratch.candidates);
    return token >= 0 ? token : fallback();
  }
  if (greedy()) {
    const Token token = largest(logits);
    return token >= 0 ? token : fallback();
  }
  build(logits, scratch.candidates);
  double left = uniform(generator_);
  for (const Candidate& c : scratch.candidates) {
    left -= c.probability;
    if (left < 0) return c.token;
  }
  // Rounding may leave a rest; the most likely candidate takes it.
  return std::ranges::min_element(scratch.candidates, more_likely)->token;
}

Token Sampler::draw_allowed(std::span<const float> logits, SamplerScratch& scratch) {
  if (const TokenMask* const mask = grammar_.mask()) {
    if (mask->whole && mask->bits.empty() && !chain_.present()) return draw_listed(mask->list, logits, scratch);
    const bool whole = mask->whole;
    mask_row(*mask, logits, scratch.masked);
    if (!whole) add_likely(logits, scratch);
    return largest(scratch.masked) >= 0 ? draw(scratch.masked, scratch) : end_without_way();
  }
  ask_about_likely(logits, scratch.allowed);
  if (scratch.allowed.empty()) return end_without_way();
  scratch.masked.assign(logits.size(), kBanned);
  for (const Candidate& c : scratch.allowed) scratch.masked[static_cast<std::size_t>(c.token)] = c.logit;
  return draw(scratch.masked, scratch);
}

// To what a mask has so far: it was put off before all of the vocabulary had been looked at.
void Sampler::add_likely(std::span<const float> logits, SamplerScratch& scratch) const {
  constexpr std::size_t kAsked = 16;
  gather_top_k(logits, kAsked, scratch.allowed);
  grammar_.filter(scratch.allowed);
  for (const Candidate& c : scratch.allowed) scratch.masked[static_cast<std::size_t>(c.token)] = c.logit;
}

// The grammar has no way on: the model's vocabulary cannot say what it wants, or the request has banned it.
Token Sampler::end_without_way() {
  allowed_ = false;
  return ends_.empty() ? fallback() : ends_.front();
}

// As from a row that has nothing else, without the row.
Token Sampler::draw_listed(std::span<const Token> list, std::span<const float> logits, SamplerScratch& scratch) {
  scratch.masked.clear();
  for (const Token token : list) scratch.masked.push_back(logits[static_cast<std::size_t>(token)]);
  if (largest(scratch.masked) < 0) return end_without_way();
  const Token drawn = draw(scratch.masked, scratch);
  for (Candidate& c : scratch.candidates) {
    if (!greedy()) c.token = list[static_cast<std::size_t>(c.token)];
  }
  return list[static_cast<std::size_t>(drawn)];
}

void Sampler::mask_row(const TokenMask& mask, std::span<const float> logits, std::vector<float>& out) {
  constexpr int kBits = 64;
  out.assign(logits.size(), kBanned);
  for (const Token token : mask.list) out[static_cast<std::size_t>(token)] = logits[static_cast<std::size_t>(token)];
  for (std::size_t word = 0; word < mask.bits.size(); ++word) {
    const std::uint64_t bits = mask.bits[word];
    const std::size_t begin = word * kBits;
    if (std::popcount(bits) > kBits / 2 && begin + kBits <= logits.size()) {
      std::copy_n(logits.data() + begin, kBits, out.data() + begin);
      for (std::uint64_t left = ~bits; left != 0; left &= left - 1) {
        out[begin + static_cast<std::size_t>(std::countr_zero(left))] = kBanned;
      }
    } else {
      for (std::uint64_t left = bits; left != 0; left &= left - 1) {
        const std::size_t token = begin + static_cast<std::size_t>(std::countr_zero(left));
        out[token] = logits[token];
      }
    }
  }
}

// libllama's grammars take about a microsecond for each token that they are asked about, so the whole vocabulary is
// asked about only where nothing among the most likely tokens passes. Those that are less likely than all that was
// asked about are left out; where min-p or the greedy choice would have left them out anyway, that changes nothing.
void Sampler::ask_about_likely(std::span<const float> logits, std::vector<Candidate>& allowed) const {
  constexpr std::size_t kFirst = 256;
  constexpr std::size_t kMost = 4096;
  for (const std::size_t count : {kFirst, kMost, static_cast<std::size_t>(vocabulary_)}) {
    gather_top_k(logits, count, allowed);
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

void Sampler::tell_chances(Token token, SamplerScratch& scratch, std::vector<TokenChance>& out) const {
  const auto wanted = static_cast<std::size_t>(params_.chances);
  out.clear();
  if (params_.chances_after) {
    std::vector<Candidate>& candidates = scratch.candidates;
    if (greedy() && !chain_.present()) candidates.assign(1, {token, 0.0f, 1.0});
    const auto by_chance = [](const Candidate& a, const Candidate& b) {
      return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
    };
    std::ranges::sort(candidates, by_chance);
    const auto found = std::ranges::find(candidates, token, &Candidate::token);
    const double own = found != candidates.end() ? found->probability : 0.0;
    out.push_back({token, static_cast<float>(std::log(own))});
    for (std::size_t i = 0; i < std::min(wanted, candidates.size()); ++i) {
      out.push_back({candidates[i].token, static_cast<float>(std::log(candidates[i].probability))});
    }
    return;
  }
  tell_likelihood(scratch.raw, token, wanted, scratch, out);
}

void tell_likelihood(std::span<const float> logits, Token token, std::size_t wanted, SamplerScratch& scratch,
                     std::vector<TokenChance>& out) {
  const Token best = largest(logits);
  const double top =
      best >= 0 ? std::min(logits[static_cast<std::size_t>(best)], std::numeric_limits<float>::max()) : 0.0;
  const double all = top + std::log(std::max(mass_of(logits, top), 1e-300));
  out.clear();
  out.push_back({token, static_cast<float>(logits[static_cast<std::size_t>(token)] - all)});
  gather_top_k(logits, wanted, scratch.allowed);
  std::ranges::sort(scratch.allowed, more_likely);
  for (const Candidate& c : scratch.allowed) out.push_back({c.token, static_cast<float>(c.logit - all)});
}

std::span<const Candidate> Sampler::distribution(std::span<float> logits, SamplerScratch& scratch) const {
  adjust(logits);
  std::vector<Candidate>& candidates = scratch.candidates;
  if (greedy()) {
    const Token token = largest(logits);
    candidates.assign(1, {token >= 0 ? token : fallback(), 0.0f, 1.0});
    if (token >= 0) candidates.front().logit = logits[static_cast<std::size_t>(token)];
  } else {
    build(logits, candidates);
    std::ranges::sort(candidates, more_likely);
  }
  return candidates;
}

}  // namespace chasqui
