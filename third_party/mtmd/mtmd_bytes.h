/* What mtmd knows and does not tell or let change: how much memory a piece of a prompt keeps until it is encoded, how
 * many threads encode, and what a projector has loaded that does not fit the model. */
#pragma once

#include <cstddef>

#include <mtmd.h>

namespace chasqui {

// Of the pixels or the spectrum of a picture or a sound; 0 for text. Any thread.
std::size_t mtmd_chunk_bytes(const mtmd_input_chunk* chunk);

// As mtmd_init_from_file, which keeps the memory of the encoders where it refuses a projector after loading them: one of
// another width than the model, for example. This frees it. No progress is reported. Any thread.
mtmd_context* mtmd_open(const char* path, const llama_model* model, mtmd_context_params params);

// For the encodings that begin from now on. The thread that encodes.
void mtmd_use_threads(mtmd_context* context, int threads);

}  // namespace chasqui
