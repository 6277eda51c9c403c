#include "core/sampling.h"

#include <algorithm>

namespace chasqui {
namespace {

constexpr SamplingStep kDefaultSteps[] = {
    SamplingStep::penalties, SamplingStep::dry,       SamplingStep::top_n_sigma,
    SamplingStep::top_k,     SamplingStep::typical_p, SamplingStep::top_p,
    SamplingStep::min_p,     SamplingStep::xtc,       SamplingStep::temperature,
};

using P = SamplingParams;
constexpr double kBig = 1e6;
constexpr SamplingRule kRules[] = {
    {.field = "temperature", .minimum = 0, .maximum = 100, .real = &P::temperature},
    {.field = "dynatemp_range", .minimum = 0, .maximum = 100, .real = &P::dynatemp_range},
    {.field = "dynatemp_exponent", .minimum = 0, .maximum = 100, .real = &P::dynatemp_exponent},
    {.field = "top_k", .minimum = -1, .maximum = kBig, .whole = &P::top_k},
    {.field = "top_p", .minimum = 0, .maximum = 1, .real = &P::top_p},
    {.field = "min_p", .minimum = 0, .maximum = 1, .real = &P::min_p},
    {.field = "top_n_sigma", .minimum = -1, .maximum = 100, .real = &P::top_n_sigma},
    {.field = "typical_p", .minimum = 0, .maximum = 1, .real = &P::typical_p},
    {.field = "xtc_probability", .minimum = 0, .maximum = 1, .real = &P::xtc_probability},
    {.field = "xtc_threshold", .minimum = 0, .maximum = 1, .real = &P::xtc_threshold},
    {.field = "min_keep", .minimum = 0, .maximum = kBig, .whole = &P::min_keep},
    {.field = "repeat_last_n", .minimum = -1, .maximum = kBig, .whole = &P::repeat_last_n},
    {.field = "repeat_penalty", .minimum = 0.01, .maximum = 100, .real = &P::repeat_penalty},
    {.field = "frequency_penalty", .minimum = -100, .maximum = 100, .real = &P::frequency_penalty},
    {.field = "presence_penalty", .minimum = -100, .maximum = 100, .real = &P::presence_penalty},
    {.field = "dry_multiplier", .minimum = 0, .maximum = 100, .real = &P::dry_multiplier},
    {.field = "dry_base", .minimum = 1, .maximum = 100, .real = &P::dry_base},
    {.field = "dry_allowed_length", .minimum = 0, .maximum = kBig, .whole = &P::dry_allowed_length},
    {.field = "dry_penalty_last_n", .minimum = -1, .maximum = kBig, .whole = &P::dry_penalty_last_n},
    {.field = "mirostat", .minimum = 0, .maximum = 2, .whole = &P::mirostat},
    {.field = "mirostat_tau", .minimum = 0, .maximum = 100, .real = &P::mirostat_tau},
    {.field = "mirostat_eta", .minimum = 0, .maximum = 1, .real = &P::mirostat_eta},
    {.field = "adaptive_target", .minimum = -1, .maximum = 1, .real = &P::adaptive_target},
    {.field = "adaptive_decay", .minimum = 0, .maximum = 0.99, .real = &P::adaptive_decay},
    {.field = "min_tokens", .minimum = 0, .maximum = kBig, .whole = &P::min_tokens},
};

}  // namespace

std::span<const SamplingStep> default_sampling_steps() { return kDefaultSteps; }

std::span<const SamplingStep> steps_of(const SamplingParams& params) {
  return params.steps ? std::span<const SamplingStep>(*params.steps) : default_sampling_steps();
}

bool has_step(const SamplingParams& params, SamplingStep step) {
  const std::span<const SamplingStep> steps = steps_of(params);
  return std::ranges::find(steps, step) != steps.end();
}

std::string_view name(SamplingStep step) {
  switch (step) {
    case SamplingStep::penalties: return "penalties";
    case SamplingStep::dry: return "dry";
    case SamplingStep::top_n_sigma: return "top_n_sigma";
    case SamplingStep::top_k: return "top_k";
    case SamplingStep::typical_p: return "typ_p";
    case SamplingStep::top_p: return "top_p";
    case SamplingStep::min_p: return "min_p";
    case SamplingStep::xtc: return "xtc";
    case SamplingStep::temperature: return "temperature";
    case SamplingStep::infill: return "infill";
    case SamplingStep::adaptive_p: return "adaptive_p";
  }
  return "";
}

std::span<const SamplingRule> sampling_rules() { return kRules; }

}  // namespace chasqui
