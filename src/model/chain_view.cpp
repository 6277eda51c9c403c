#include "model/chain_view.h"

#include <algorithm>

#include "base/limits.h"
#include "model/repetition_steps.h"

namespace chasqui {

// Steps that are off do nothing, and a temperature, unless it follows the entropy of all tokens, changes no order.
ChainView chain_view(const SamplingParams& params) {
  ChainView view;
  bool tempered = false;
  const auto looks_back = [&view](std::int32_t tokens) {
    view.look_back = view.look_back < 0 || tokens < 0 ? -1 : std::max(view.look_back, tokens);
  };
  if (params.mirostat != 0) return {};
  for (const SamplingStep step : steps_of(params)) {
    switch (step) {
      case SamplingStep::penalties:
        if (penalties_on(params)) looks_back(params.repeat_last_n);
        break;
      case SamplingStep::dry:
        if (params.dry_multiplier > 0) looks_back(params.dry_penalty_last_n);
        break;
      case SamplingStep::top_n_sigma:
        if (params.top_n_sigma > 0) return view;
        break;
      case SamplingStep::top_k:
        view.most = static_cast<std::size_t>(std::max(params.top_k, 0));
        if (view.most > 0) return view;
        break;
      case SamplingStep::typical_p:
        if (params.typical_p < 1) return view;
        break;
      case SamplingStep::top_p:
        if (params.top_p < 1) return view;
        break;
      case SamplingStep::min_p:
        if (!(params.min_p > 0)) break;
        if (tempered) return view;
        view.most = static_cast<std::size_t>(std::max(params.min_keep, 1));
        view.min_p = params.min_p;
        return view;
      case SamplingStep::xtc:
        if (params.xtc_probability > 0) return view;
        break;
      case SamplingStep::temperature:
        if (params.dynatemp_range > 0) return view;
        tempered = true;
        break;
      case SamplingStep::infill: view.most = kCountLimit<"infill_candidates">; return view;
      case SamplingStep::adaptive_p: break;  // it comes last
    }
  }
  return view;
}

}  // namespace chasqui
