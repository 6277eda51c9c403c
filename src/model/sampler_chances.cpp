// What a sampler tells of how likely tokens were.
#include <algorithm>
#include <cmath>

#include "model/sampler.h"

namespace chasqui {
namespace {

// Of the row that `scratch` looks at: the sum that turns logits into likelihoods, and the most likely.
void note_likelihoods(std::size_t wanted, SamplerScratch& scratch) {
  LogitRow& row = scratch.row;
  scratch.log_sum =
      row.largest() >= 0 ? static_cast<double>(row.top()) + std::log(row.mass(LogitRow::kLeast, 1.0f)) : 0;
  row.top_k(wanted, scratch.likely);
  std::ranges::sort(scratch.likely, more_likely);
}

void list_likelihoods(Token token, float logit, const SamplerScratch& scratch, std::vector<TokenChance>& out) {
  out.assign(1, {token, static_cast<float>(logit - scratch.log_sum)});
  for (const Candidate& c : scratch.likely) out.push_back({c.token, static_cast<float>(c.logit - scratch.log_sum)});
}

}  // namespace

void tell_likelihood(std::span<float> logits, Token token, std::size_t wanted, SamplerScratch& scratch,
                     std::vector<TokenChance>& out) {
  scratch.row.look(logits);
  note_likelihoods(wanted, scratch);
  list_likelihoods(token, scratch.row[token], scratch, out);
}

// Of the row as the model gave it, before the request changes it.
void Sampler::note_chances(SamplerScratch& scratch) const {
  LogitRow& row = scratch.row;
  note_likelihoods(static_cast<std::size_t>(params_.chances), scratch);
  scratch.changed.clear();
  for (const LogitBias& b : bias_) scratch.changed.emplace_back(b.token, row[b.token]);
  for (const Token token : ends_) scratch.changed.emplace_back(token, row[token]);
  for (const auto& [token, count] : window_.counts()) scratch.changed.emplace_back(token, row[token]);
}

void Sampler::tell_chances(Token token, std::span<const float> logits, SamplerScratch& scratch,
                           std::vector<TokenChance>& out) {
  const auto changed = std::ranges::find(scratch.changed, token, &std::pair<Token, float>::first);
  const float own = changed != scratch.changed.end() ? changed->second : logits[static_cast<std::size_t>(token)];
  list_likelihoods(token, own, scratch, out);
}

// In the distribution that it was drawn from.
void Sampler::tell_drawn_chances(Token token, SamplerScratch& scratch, std::vector<TokenChance>& out) const {
  std::vector<Candidate>& candidates = scratch.candidates;
  if (scratch.drew_row) {
    list_drawn(scratch.row, token, scratch);
  } else if (candidates.empty()) {
    candidates.assign(1, {token, 0.0f, 1.0});
  }
  const auto by_chance = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  };
  const auto found = std::ranges::find(candidates, token, &Candidate::token);
  const double own = found != candidates.end() ? found->probability : 0.0;
  out.assign(1, {token, static_cast<float>(std::log(own))});
  const auto told = static_cast<std::ptrdiff_t>(std::min(static_cast<std::size_t>(params_.chances), candidates.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + told, candidates.end(), by_chance);
  for (auto c = candidates.begin(); c != candidates.begin() + told; ++c) {
    out.push_back({c->token, static_cast<float>(std::log(c->probability))});
  }
}

// Of what was drawn from the row: the most likely candidates, and the token.
void Sampler::list_drawn(LogitRow& row, Token token, SamplerScratch& scratch) const {
  std::vector<Candidate>& candidates = scratch.candidates;
  row.top_k(static_cast<std::size_t>(params_.chances), candidates);
  std::erase_if(candidates, [&](const Candidate& c) { return c.logit < scratch.least; });
  if (std::ranges::find(candidates, token, &Candidate::token) == candidates.end()) {
    candidates.push_back({token, row[token], 0.0});
  }
  const double top = row.top();
  for (Candidate& c : candidates)
    c.probability = std::exp((c.logit - top) * static_cast<double>(scratch.scale)) / scratch.mass;
}

}  // namespace chasqui
