// The source of draft tokens of `chasqui serve`: a draft model, a small one that must speak the same tokens as the
// large one, with a context for each worker; or heads that were trained for the large one. At start only.
#pragma once

#include "app/config.h"
#include "engine/engine.h"
#include "model/loaded_model.h"

namespace chasqui {

// Says eagle3 where nothing but such a file was named. Errors name the flag.
Result<void> find_drafter(SpeculationOptions& options);

// Where draft heads are asked for. Errors name the flag.
Result<HeadsConfig> choose_heads(const ServeConfig& config, const LoadedModel& model);

// Where draft tokens are asked for: rows that a model whose memory is a state is to take back.
TokenCount wanted_rollback(const SpeculationOptions& options, bool trims_anywhere);
// Says so where they are asked for, and this model cannot take back rejected ones.
void warn_of_no_rollback(const SpeculationOptions& options, const ModelShape& shape);

// None where none was asked for, or the model of this `shape` cannot check draft tokens. `part` is what each worker's
// large model is made with. Errors name the flag.
Result<Models> make_drafts(const ServeConfig& config, const LoadedModel& model, const ModelConfig& part,
                           const ModelShape& shape);

}  // namespace chasqui
