// What a sampler draws from a row whose tokens it does not list, and where such a row is cut.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/mixed_bits.h"
#include "model/sampler.h"

namespace chasqui {
namespace {

constexpr Token kAllTokens = std::numeric_limits<Token>::max();

// Whether those from `bound` on weigh less than `part` of those from `least` on.
bool weighs_less(LogitRow& row, float bound, double part, float least) {
  if (!(bound > least)) return false;
  const LogitRow::Masses masses = row.masses(least, 1.0f, bound);
  return masses.above < part * masses.all;
}

// A number that the first one says nothing about, so that a token takes as many of the generator's outputs as ever.
double another(double drawn) {
  return static_cast<double>(mixed_bits(static_cast<std::uint64_t>(drawn * 0x1p53)) >> 11) * 0x1p-53;
}

}  // namespace

// Lists the tokens of the row that the chain has to be given. False: that would be too many of them.
bool Sampler::list_for_chain(SamplerScratch& scratch) const {
  constexpr std::size_t kQuick = 512;
  constexpr std::size_t kWorthIt = 8;
  constexpr float kRounding = 0.001f;
  LogitRow& row = scratch.row;
  std::vector<Candidate>& list = scratch.candidates;
  const ChainView& view = chain_.view();
  const auto& changed = chain_.changed().counts();
  const std::size_t count = view.most + changed.size();  // among so many there are enough that are not changed
  if (view.most == 0 || row.largest() < 0 || count > row.size() / kWorthIt) return false;
  if (count <= kQuick) {
    row.top_k(count, list);
  } else {
    row.at_least(scratch.cut.about_count(row, static_cast<double>(count)), list);
    if (list.size() < count) return false;
  }
  const auto is_changed = [&changed](const Candidate& c) { return changed.contains(c.token); };
  const float least = std::ranges::min_element(list, {}, &Candidate::logit)->logit;
  std::erase_if(list, is_changed);
  if (view.min_p > 0 && !list.empty()) {
    // The most likely one may be one that is changed, and is no less likely than this one then.
    const float top = std::ranges::max_element(list, {}, &Candidate::logit)->logit;
    const float bound = std::max(top + std::log(view.min_p) - kRounding, LogitRow::kLeast);
    if (bound <= least) {
      // Too many even to list them.
      if (steps_ && row.mass(bound, 0) > static_cast<double>(row.size() / kWorthIt)) return false;
      row.at_least(bound, list);
      std::erase_if(list, is_changed);
    }
  }
  const auto unchanged = static_cast<std::ptrdiff_t>(list.size());
  for (const auto& [token, times] : changed) {
    if (row[token] > LogitRow::kBanned) list.push_back({token, std::min(row[token], LogitRow::kMost), 0.0});
  }
  const auto added = list.begin() + unchanged;
  if (!std::ranges::is_sorted(list.begin(), added, {}, &Candidate::token)) {
    std::ranges::sort(list, {}, &Candidate::token);
    return true;
  }
  std::ranges::sort(added, list.end(), {}, &Candidate::token);  // of a flat row the others are nearly all tokens
  std::ranges::inplace_merge(list, added, {}, &Candidate::token);
  return true;
}

// As a chain of the same steps would draw, which would need a list of all tokens.
Token Sampler::draw_in_steps(SamplerScratch& scratch, double drawn) {
  LogitRow& row = scratch.row;
  const std::span<const float> as_it_came = row.logits();
  const RowSteps::Tools tools{scratch.cut, scratch.typical, scratch.candidates};
  const double again = another(drawn);
  const auto change = [&] {
    if (grammar_.present() || params_.chances >= 0) {
      scratch.changed_row.assign(as_it_came.begin(), as_it_came.end());
      row.look(scratch.changed_row);
    }
    chain_.change(row);
  };
  change();
  const Token token = steps_->draw(row, tools, drawn, again);
  scratch.drew_row = false;
  if (params_.chances_after && params_.chances >= 0) {
    change();
    const RowSteps::Left left = steps_->narrow(row, tools, again);
    scratch.drew_row = !left.certain;
    scratch.least = left.least;
    scratch.scale = left.scale;
    scratch.mass = row.mass(left.least, left.scale);
  }
  scratch.candidates.clear();
  return token;
}

// Of the tokens that surprise by so many bits at most, which change so that the mean surprise comes to be the target
// (Basu et al., 2021, as llama.cpp's version 2 does it).
Token Sampler::draw_mirostat(SamplerScratch& scratch, double drawn) {
  LogitRow& row = scratch.row;
  const float scale = LogitRow::scale_of(params_.temperature);
  scratch.candidates.clear();
  Token token = row.largest();
  double surprise = 0;
  const double least = std::log(row.mass(LogitRow::kLeast, scale)) - surprise_max_ * std::numbers::ln2;
  if (least < 0) {
    scratch.drew_row = true;
    scratch.scale = scale;
    scratch.least = std::max(row.top() + static_cast<float>(least * params_.temperature), LogitRow::kLeast);
    scratch.mass = row.mass(scratch.least, scale);
    token = row.draw(scratch.least, scale, drawn);
    const float below_top = row.top() - std::min(row[token], LogitRow::kMost);
    surprise = std::log2(scratch.mass) + below_top * scale * std::numbers::log2e;
  }
  surprise_max_ -= static_cast<double>(params_.mirostat_eta) * (surprise - static_cast<double>(params_.mirostat_tau));
  return token;
}

// What is looked at of a large row are those that top-k leaves, and some more; they are a row of their own then.
bool Sampler::lists_top_k(const LogitRow& row) const {
  constexpr TokenCount kMostListed = 32768;
  return params_.top_k > 0 && params_.top_k <= kMostListed && row.size() > 2 * static_cast<std::size_t>(params_.top_k);
}

// Of those that are at least `bound`.
Token Sampler::draw_of_top_k(SamplerScratch& scratch, float bound, double drawn) {
  LogitRow& row = scratch.row;
  const auto most = static_cast<std::size_t>(params_.top_k);
  float floor = std::max(bound, scratch.cut.about_count(row, params_.top_k));
  LogitRow::Found found = row.found(floor);
  if (found.tokens.size() < most && floor > bound) {
    floor = scratch.cut.reach_count(row, bound, params_.top_k).logit;
    found = row.found(floor);
  }
  scratch.listed.look(found.logits);
  const Token place = draw_row(scratch.listed, floor, scratch, drawn);
  if (params_.chances_after && params_.chances >= 0) list_drawn(scratch.listed, place, scratch);
  scratch.drew_row = false;
  scratch.cut.forget();  // what it has banned is of the other row
  const auto token_at = [&found](Token at) { return static_cast<Token>(found.tokens[static_cast<std::size_t>(at)]); };
  for (Candidate& c : scratch.candidates) c.token = token_at(c.token);
  return token_at(place);
}

// Of those that are at least `floor`. Leaves in `scratch` what the token was drawn from, where that is to be told.
Token Sampler::draw_row(LogitRow& row, float floor, SamplerScratch& scratch, double drawn) {
  scratch.drew_row = true;
  scratch.candidates.clear();  // those of another row would be taken for what this one was narrowed to
  const bool tells = params_.chances_after && params_.chances >= 0;
  const float scale = LogitRow::scale_of(params_.temperature);
  float least = narrow_by_top_k(row, floor, scratch);
  const std::optional<Token> token = draw_without_cut(row, least, scratch, drawn);
  if (token && !tells) return *token;
  if (token) {
    scratch.cut.take_back(row);
    least = narrow_by_top_k(row, floor, scratch);
  }
  scratch.least = narrow(row, least, scratch);
  scratch.scale = scale;
  if (tells) scratch.mass = row.mass(scratch.least, scale);
  return token ? *token : row.draw(scratch.least, scale, drawn);
}

// Which logit is the least that may be drawn of those from `least` on; what is as likely as that and too much is banned
// in the row. REQUIRES: a row with a largest logit
float Sampler::narrow(LogitRow& row, float least, SamplerScratch& scratch) const {
  Candidate last{kAllTokens, least, 0.0};
  const float bound = params_.min_p > 0.0f ? std::max(least, min_p_bound(row.top())) : least;
  if (params_.top_p < 1.0f) {
    const auto part = static_cast<double>(params_.top_p);
    if (!weighs_less(row, bound, part, least)) last = scratch.cut.reach_part(row, least, part);
  }
  if (bound > last.logit) last = {kAllTokens, bound, 0.0};
  if (keep_min() > 1) {
    row.top_k(keep_min(), scratch.candidates);
    Candidate kept = *std::ranges::max_element(scratch.candidates, more_likely);
    if (kept.logit < least) kept = {kAllTokens, least, 0.0};
    if (more_likely(last, kept)) last = kept;
  }
  if (last.token != kAllTokens) scratch.cut.ban_after(row, last);
  return std::max(last.logit, LogitRow::kLeast);
}

float Sampler::narrow_by_top_k(LogitRow& row, float floor, SamplerScratch& scratch) const {
  if (params_.top_k <= 0 || static_cast<std::size_t>(params_.top_k) >= row.size()) return floor;
  const Candidate last = scratch.cut.reach_count(row, floor, params_.top_k);
  scratch.cut.ban_after(row, last);
  return last.logit;
}

// Where only top-p cuts, a token is drawn before it is known where. Nothing: where it cuts has to be found first.
std::optional<Token> Sampler::draw_without_cut(LogitRow& row, float least, SamplerScratch& scratch, double drawn) {
  constexpr float kMost = 0.9f;
  if (!(params_.top_p < 1.0f) || params_.min_p > 0.0f || keep_min() > 1) return std::nullopt;
  // What top-p leaves out weighs 1 - top_p of all at a temperature of 1, and less at a lower one.
  const bool leaves_most = params_.top_p >= kMost && params_.temperature <= 1.0f;
  if (leaves_most) return draw_before_cut(row, least, scratch, drawn);
  return draw_around_cut(row, least, scratch, drawn);
}

// Draws from all and looks whether top-p leaves that token, which is one sweep; only where it seems not to, where the
// row is cut has to be found. The distribution is the same: what is drawn instead is from what is left.
Token Sampler::draw_before_cut(LogitRow& row, float least, SamplerScratch& scratch, double drawn) {
  const float scale = LogitRow::scale_of(params_.temperature);
  const Token token = row.draw(least, scale, drawn);
  if (token == row.largest()) return token;
  const float logit = std::min(row[token], LogitRow::kMost);
  const auto part = static_cast<double>(params_.top_p);
  if (scratch.cut.surely_within(row, least, part, logit)) return token;
  const LogitRow::Masses masses = row.masses(least, 1.0f, logit);
  if (masses.above <= masses.all * part) return token;
  const Candidate last = scratch.cut.reach_part(row, least, part);
  return more_likely(last, {token, logit, 0.0}) ? draw_down_to(last, row, scratch, drawn) : token;
}

// The same where top-p leaves out much of what is likely at the temperature: draws from what it may leave. Nothing: it
// is not known about where that ends.
std::optional<Token> Sampler::draw_around_cut(LogitRow& row, float least, SamplerScratch& scratch, double drawn) {
  const auto around = scratch.cut.around_part(row, least, static_cast<double>(params_.top_p));
  if (!around) return std::nullopt;
  const float scale = LogitRow::scale_of(params_.temperature);
  const Token token = row.draw(around->low, scale, drawn);
  const float logit = std::min(row[token], LogitRow::kMost);
  if (logit >= around->high) return token;
  const Candidate last = scratch.cut.reach(row, *around);
  return more_likely(last, {token, logit, 0.0}) ? draw_down_to(last, row, scratch, drawn) : token;
}

Token Sampler::draw_down_to(const Candidate& last, LogitRow& row, SamplerScratch& scratch, double drawn) const {
  scratch.cut.ban_after(row, last);
  const float scale = LogitRow::scale_of(params_.temperature);
  return row.draw(std::max(last.logit, LogitRow::kLeast), scale, another(drawn));
}

}  // namespace chasqui
