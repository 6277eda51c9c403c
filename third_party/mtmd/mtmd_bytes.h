/* How much memory a piece of a prompt keeps until it is encoded: mtmd has the numbers and does not tell them. Any
 * thread. */
#pragma once

#include <cstddef>

struct mtmd_input_chunk;

namespace chasqui {

// Of the pixels or the spectrum of a picture or a sound; 0 for text.
std::size_t mtmd_chunk_bytes(const mtmd_input_chunk* chunk);

}  // namespace chasqui
