// What a sampler draws where its grammar refuses what was drawn first.
#include <algorithm>

#include "base/limits.h"
#include "model/sampler.h"

namespace chasqui {

Token Sampler::draw_allowed(std::span<float> logits, SamplerScratch& scratch) {
  // What narrowed the row for the first draw was not only for what the grammar allows.
  scratch.cut.take_back(scratch.row);
  if (scratch.row.logits().data() != logits.data()) scratch.row.look(logits);
  if (const TokenMask* const mask = find_mask(scratch)) {
    if (put_off_ > 0) return kPutOff;
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
  if (scratch.allowed.empty()) return end_without_way(scratch);
  scratch.masked.assign(logits.size(), LogitRow::kBanned);
  for (const Candidate& c : scratch.allowed) scratch.masked[static_cast<std::size_t>(c.token)] = c.logit;
  scratch.row.look(scratch.masked);
  return draw_masked(scratch);
}

// Whole where it can be: a mask for which there is no time now puts the token off, if the caller can wait, but not for
// ever. Null: any token may come, or only asking one by one tells.
const TokenMask* Sampler::find_mask(SamplerScratch& scratch) {
  constexpr int kPutOffMost = static_cast<int>(kCountLimit<"grammar_mask_steps">);
  const bool waits = scratch.can_wait && put_off_ < kPutOffMost;
  for (;;) {
    const std::uint64_t most = waits ? std::max(scratch.mask_work, scratch.mask_least) : GrammarMasks::kStepWork;
    std::uint64_t work = most;
    const TokenMask* const mask = grammar_.mask(work);
    scratch.mask_work -= std::min(scratch.mask_work, most - work);
    const bool whole = mask == nullptr || mask->whole;
    put_off_ = whole || !waits ? 0 : put_off_ + 1;
    if (whole || waits || !mask->empty()) return mask;
  }
}

Token Sampler::draw_masked(SamplerScratch& scratch) {
  return scratch.row.largest() >= 0 ? draw(scratch) : end_without_way(scratch);
}

// To what a mask has so far: all of the vocabulary was not looked at in the time that there is.
void Sampler::find_likely_allowed(SamplerScratch& scratch) const {
  constexpr std::size_t kAsked = 16;
  scratch.row.top_k(kAsked, scratch.allowed);
  grammar_.filter(scratch.allowed);
  for (const Candidate& c : scratch.allowed) add_token(scratch.mask, c.token);
}

// The grammar has no way on: the model's vocabulary cannot say what it wants, or the request has banned it.
Token Sampler::end_without_way(SamplerScratch& scratch) {
  allowed_ = false;
  scratch.drew_row = false;  // it is the row of what the grammar has refused
  scratch.candidates.clear();
  return ends_.empty() ? fallback() : ends_.front();
}

// As from a row that has nothing else, without the row.
Token Sampler::draw_listed(std::span<const Token> list, SamplerScratch& scratch) {
  scratch.masked.clear();
  for (const Token token : list) scratch.masked.push_back(scratch.row[token]);
  scratch.row.look(scratch.masked);
  if (scratch.row.largest() < 0) return end_without_way(scratch);
  const Token drawn = draw(scratch);
  if (scratch.drew_row && params_.chances_after && params_.chances >= 0) list_drawn(scratch.row, drawn, scratch);
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
                     least < min_p_bound(std::ranges::max_element(allowed, {}, &Candidate::logit)->logit);
    if (greedy() || cut) break;
  }
}

}  // namespace chasqui
