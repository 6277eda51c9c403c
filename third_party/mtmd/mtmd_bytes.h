/* What mtmd knows and does not tell or let change: how much memory a piece of a prompt keeps until it is encoded, and
 * how many threads encode. */
#pragma once

#include <cstddef>

struct mtmd_context;
struct mtmd_input_chunk;

namespace chasqui {

// Of the pixels or the spectrum of a picture or a sound; 0 for text. Any thread.
std::size_t mtmd_chunk_bytes(const mtmd_input_chunk* chunk);

// For the encodings that begin from now on. The thread that encodes.
void mtmd_use_threads(mtmd_context* context, int threads);

}  // namespace chasqui
