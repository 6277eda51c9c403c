#include "model/row_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/repetition_steps.h"

namespace chasqui {
namespace {

constexpr float kMostTypical = 0.7f;  // typical_p, from which on it is worth while to look at the drawn token

bool is_on(SamplingStep step, const SamplingParams& params) {
  switch (step) {
    case SamplingStep::penalties: return penalties_on(params);
    case SamplingStep::dry: return params.dry_multiplier > 0;
    case SamplingStep::top_n_sigma: return params.top_n_sigma > 0;
    case SamplingStep::top_k: return params.top_k > 0;
    case SamplingStep::typical_p: return params.typical_p < 1;
    case SamplingStep::top_p: return params.top_p < 1;
    case SamplingStep::min_p: return params.min_p > 0;
    case SamplingStep::xtc: return params.xtc_probability > 0;
    case SamplingStep::temperature:
    case SamplingStep::infill:
    case SamplingStep::adaptive_p: return true;
  }
  return true;
}

}  // namespace

RowSteps::RowSteps(const SamplingParams& params) : params_(params) {}

std::optional<RowSteps> RowSteps::of(const SamplingParams& params) {
  if (params.mirostat != 0) return std::nullopt;
  RowSteps out(params);
  for (const SamplingStep step : steps_of(params)) {
    if (!is_on(step, params)) continue;
    const bool first = out.steps_.empty();
    bool counts = false;
    switch (step) {
      case SamplingStep::penalties:
      case SamplingStep::dry:
        if (!first) return std::nullopt;
        continue;
      case SamplingStep::top_n_sigma:
        if (!first) return std::nullopt;
        break;
      case SamplingStep::infill:
      case SamplingStep::adaptive_p: return std::nullopt;
      case SamplingStep::xtc: counts = params.min_keep > 1; break;
      case SamplingStep::temperature: counts = params.dynatemp_range > 0; break;
      case SamplingStep::top_k:
      case SamplingStep::typical_p:
      case SamplingStep::top_p:
      case SamplingStep::min_p: break;
    }
    // These count what top-n-sigma makes impossible and leaves in the list.
    if (counts && has_step(params, SamplingStep::top_n_sigma) && params.top_n_sigma > 0) return std::nullopt;
    out.steps_.push_back(step);
    if (step == SamplingStep::typical_p) out.cuts_late_ = params.typical_p >= kMostTypical;
    if (step != SamplingStep::typical_p && step != SamplingStep::temperature) out.cuts_late_ = false;
  }
  const bool steady = params.temperature > 0 && !(params.dynatemp_range > 0);
  // The number that XTC is decided by is the one that draws again.
  const bool excludes = std::ranges::find(out.steps_, SamplingStep::xtc) != out.steps_.end();
  out.cuts_late_ = out.cuts_late_ && steady && !excludes && out.keep_min() <= 1;
  return out;
}

// Where typical-p leaves most, a token is drawn before it is known where the row is cut, and looked at: that is one
// sweep. What is drawn instead of one that typical-p leaves out is of what it leaves, so that the distribution is the
// same.
Token RowSteps::draw(LogitRow& row, const Tools& tools, double drawn, double again) const {
  Left left = narrow(row, tools, again, cuts_late_);
  if (left.certain) return row.largest();
  const Token token = row.draw(left.least, left.scale, drawn);
  if (!cuts_late_) return token;
  Left before = left;
  before.scale = left.scale_before;
  const Typical typical = this->typical(row, before);
  if (weight_nearer(row, token, before, typical.middle) < typical.target) return token;
  return row.draw(keep_typical(row, tools, before, typical), left.scale, again);
}

// What all that are nearer to the middle than this token weigh.
double RowSteps::weight_nearer(LogitRow& row, Token token, const Left& left, float middle) const {
  const float logit = std::min(row[token], LogitRow::kMost);
  const bool below = logit < middle;
  const float low = below ? std::nextafter(logit, LogitRow::kMost) : middle - (logit - middle);
  const float high = below ? middle + (middle - logit) : logit;
  const float least = std::max(left.least, low);
  const LogitRow::Masses masses = row.masses(least, left.scale, std::max(least, high));
  return masses.all - masses.above;
}

RowSteps::Left RowSteps::narrow(LogitRow& row, const Tools& tools, double drawn, bool all_but_typical) const {
  Left left;
  for (const SamplingStep step : steps_) {
    switch (step) {
      case SamplingStep::top_n_sigma: left.least = sigma_bound(row); break;
      case SamplingStep::top_k: left.least = keep_top_k(row, tools, left); break;
      case SamplingStep::typical_p:
        left.scale_before = left.scale;
        if (!all_but_typical) left.least = keep_typical(row, tools, left, typical(row, left));
        break;
      case SamplingStep::top_p: left.least = keep_top_p(row, tools, left); break;
      case SamplingStep::min_p: left.least = keep_min_p(row, tools, left); break;
      case SamplingStep::xtc:
        if (drawn < static_cast<double>(params_.xtc_probability)) leave_out_likely(row, tools, left);
        break;
      case SamplingStep::temperature: temper(row, left); break;
      case SamplingStep::penalties:
      case SamplingStep::dry:
      case SamplingStep::infill:
      case SamplingStep::adaptive_p: break;  // of() leaves none of them
    }
    if (left.certain) break;
  }
  return left;
}

float RowSteps::sigma_bound(const LogitRow& row) const {
  const double bound = row.top() - static_cast<double>(params_.top_n_sigma) * row.deviation();
  return bound > static_cast<double>(LogitRow::kLeast) ? static_cast<float>(bound) : LogitRow::kLeast;
}

// The last of the tokens that are left whatever else is not.
Candidate RowSteps::kept_in_any_case(LogitRow& row, const Tools& tools, const Left& left) const {
  if (keep_min() <= 1) return {row.largest(), row.top(), 0.0};
  row.top_k(keep_min(), tools.list);
  const Candidate last = *std::ranges::max_element(tools.list, more_likely);
  return last.logit < left.least ? Candidate{std::numeric_limits<Token>::max(), left.least, 0.0} : last;
}

float RowSteps::keep_top_k(LogitRow& row, const Tools& tools, const Left& left) const {
  if (static_cast<std::size_t>(params_.top_k) >= row.size()) return left.least;
  const Candidate last = tools.cut.reach_count(row, left.least, params_.top_k);
  tools.cut.ban_after(row, last);
  return last.logit;
}

float RowSteps::keep_top_p(LogitRow& row, const Tools& tools, const Left& left) const {
  Candidate last = tools.cut.reach_part(row, left.least, static_cast<double>(params_.top_p), left.scale);
  const Candidate kept = kept_in_any_case(row, tools, left);
  if (more_likely(last, kept)) last = kept;
  tools.cut.ban_after(row, last);
  return std::max(last.logit, LogitRow::kLeast);
}

float RowSteps::keep_min_p(LogitRow& row, const Tools& tools, const Left& left) const {
  const float bound = row.top() + std::log(params_.min_p) / left.scale;
  return std::max(left.least, std::min(bound, kept_in_any_case(row, tools, left).logit));
}

// A token says log(mass) + (top - logit) * scale, so it is as far from the average as its logit is from this one.
RowSteps::Typical RowSteps::typical(LogitRow& row, const Left& left) const {
  constexpr double kLeast = 1e-30;  // one token is left in any case
  const LogitRow::Surprise all = row.surprise(left.least, left.scale);
  return {static_cast<float>(row.top() - all.below / all.mass),
          std::max(all.mass * static_cast<double>(params_.typical_p), kLeast)};
}

float RowSteps::keep_typical(LogitRow& row, const Tools& tools, const Left& left, const Typical& typical) const {
  const TypicalCut::Interval kept =
      tools.typical.around(row, left.least, left.scale, typical.middle, typical.target, keep_min());
  if (kept.high <= row.top()) row.cap(kept.high);
  return std::max({left.least, kept.low, LogitRow::kLeast});
}

// XTC: all that are as likely as the threshold but the least likely of them.
void RowSteps::leave_out_likely(LogitRow& row, const Tools& tools, const Left& left) const {
  constexpr double kMostThreshold = 0.5;  // two tokens cannot be more likely
  constexpr std::size_t kFew = 64;
  const auto threshold = static_cast<double>(params_.xtc_threshold);
  if (threshold > kMostThreshold) return;
  const double below_top = std::log(threshold * row.mass(left.least, left.scale)) / static_cast<double>(left.scale);
  const double bound = std::max(row.top() + below_top, static_cast<double>(left.least));
  std::vector<Candidate>& likely = tools.list;
  row.at_least(static_cast<float>(bound), likely);
  if (likely.size() < 2) return;
  if (keep_min() > 1) {
    const double rest = row.mass(left.least, 0) - static_cast<double>(likely.size() - 1);
    if (rest < static_cast<double>(keep_min())) return;
  }
  const Candidate last = *std::ranges::max_element(likely, more_likely);
  if (likely.size() > kFew) {
    row.cap(static_cast<float>(bound));
    return row.set(last.token, last.logit);
  }
  for (const Candidate& each : likely) {
    if (each.token != last.token) row.set(each.token, LogitRow::kBanned);
  }
}

// Dynamic: between two temperatures, the higher the less the model knows what comes.
void RowSteps::temper(LogitRow& row, Left& left) const {
  float temperature = params_.temperature;
  if (params_.dynatemp_range > 0) {
    const double count = row.mass(left.least, 0);
    if (count < 2) return;
    const LogitRow::Surprise all = row.surprise(left.least, left.scale);
    const double entropy = std::log(all.mass) + static_cast<double>(left.scale) * all.below / all.mass;
    const double share = std::clamp(entropy / std::log(count), 0.0, 1.0);
    const float lowest = std::max(0.0f, params_.temperature - params_.dynatemp_range);
    const float range = params_.temperature + params_.dynatemp_range - lowest;
    temperature = lowest + range * std::pow(static_cast<float>(share), params_.dynatemp_exponent);
  }
  left.certain = left.certain || !(temperature > 0);
  if (left.certain) return;
  left.scale = LogitRow::scale_of(static_cast<double>(temperature) / static_cast<double>(left.scale));
}

}  // namespace chasqui
