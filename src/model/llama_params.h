// What llama-server's flags say of weights and contexts, in libllama's words: where its parameters begin, before what
// Chasqui itself decides is written over them. Without flags (null) all of it is libllama's default. At start only.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "core/types.h"
#include "model/llama_options.h"
#include "model/model_config.h"

struct llama_context_params;
struct llama_model;
struct llama_model_params;

namespace chasqui {

// Values that no model could be used with. Errors name the flag.
Result<void> check_params(const common_params& params);

// The options outlive the model: libllama keeps pointers into them. A draft model has placements of its own for tensors
// that are named, and all else as the large one.
llama_model_params first_model_params(const LlamaOptionsPtr& options, bool draft);
// --spec-draft-ngl, where it was given.
std::int32_t draft_gpu_layers(const LlamaOptionsPtr& options, std::int32_t of_model);
// The context of a draft model, which has formats and threads of its own; as llama-server, formats are f16 unless said.
ModelConfig with_draft_flags(ModelConfig config, const LlamaOptionsPtr& options);
// RoPE, and what of a context is offloaded.
llama_context_params first_context_params(const LlamaOptionsPtr& options);

// libllama's number of it, for contexts and projectors.
int flash_attention_type_of(FlashAttention choice);

// --numa, once for the process: what later calls say is not looked at. REQUIRES: start_llama_runtime()
void start_numa(const LlamaOptionsPtr& options);

// What --override-kv says of the key, as text; libllama's own look-up of metadata has what the file says.
std::optional<std::string> overridden(const LlamaOptionsPtr& options, const std::string& key);

// Tokens that a sequence may have: what the model was trained with, or what RoPE was scaled to. `scaling` and
// `original` are what the model says of its own: "yarn", and 0 where it does not say.
TokenCount usable_context(const LlamaOptionsPtr& options, const llama_model* model, const std::string& scaling,
                          TokenCount original);

// What changes the meaning of keys and values: RoPE, metadata, control vectors. Empty where none of it was given.
std::string marks_of_kv(const LlamaOptionsPtr& options);
// … and what changes how long threads take: where they and the weights are. So too.
std::string marks_of_speed(const LlamaOptionsPtr& options);

}  // namespace chasqui
