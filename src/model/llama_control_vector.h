// llama-server's control vectors: directions that are added to what the layers of a model hand on, in every context
// that is made with the flags. Read when a context is made.
#pragma once

#include <string>

#include "base/error.h"
#include "model/llama_options.h"
#include "model/model_info.h"

struct llama_context;

namespace chasqui {

// Does nothing where none was given. Errors name the flag and the file.
Result<void> apply_control_vectors(llama_context* context, const LlamaOptionsPtr& options, const ModelInfo& model);

// Tells apart what they do: the layers, and the sum of the vectors. Empty where none was given.
std::string marks_of_control_vectors(const LlamaOptionsPtr& options);

}  // namespace chasqui
