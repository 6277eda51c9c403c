// A grammar that is in force from a trigger on: as a sampler of libllama, like the grammar that it owns. Until the
// trigger each token is allowed; then the grammar is told what has been said from there on. Same behaviour as
// libllama's lazy grammars, which search all of the answer at each token. Made in the offload pool, copied for each
// request.
#pragma once

#include <memory>
#include <vector>

#include "model/sampling_parts.h"
#include "model/trigger_search.h"

namespace chasqui {

struct GrammarTriggers {
  std::shared_ptr<const TriggerPatterns> patterns;
  std::vector<Token> tokens;  // the grammar describes them; what was said before them does not matter
};

// REQUIRES: `grammar` was compiled for `vocab`, which outlives the sampler
LlamaSamplerPtr make_lazy_grammar(LlamaSamplerPtr grammar, GrammarTriggers triggers, const llama_vocab* vocab);

}  // namespace chasqui
