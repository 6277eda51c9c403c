// Where reading a prompt pauses so that the state of the model can be copied out: for models whose memory cannot be cut
// (recurrent, hybrid, sliding window), where a copy serves only prompts that begin with all of its tokens. Pure.
#pragma once

#include <span>
#include <vector>

#include "core/types.h"

namespace chasqui {

// A prompt shorter than this is computed again sooner than its state is brought back.
constexpr TokenCount kCheckpointLeast = 32;

// The positions in a prompt of `prompt` tokens at which its state is kept, ascending, each between kCheckpointLeast and
// prompt - 1: the `boundaries` (where the parts of a chat begin, any order), one close to the end, from which the same
// prompt is answered again, and one at most every `every` tokens. Each costs a step of its own, so there are no more
// than one for each 64 tokens of the prompt.
// `least` tokens are between two of them, and there are no more than `most`; 0: no matter.
std::vector<TokenCount> plan_checkpoints(std::span<const TokenCount> boundaries, TokenCount prompt, TokenCount every,
                                         TokenCount least = 0, std::size_t most = 0);

// What was computed of a prompt in chunks that end at multiples of this is the same for all prompts that begin so.
constexpr TokenCount kFixedChunk = 128;
// The ends of such chunks inside the prompt, ascending.
std::vector<TokenCount> fixed_chunks(TokenCount prompt);

}  // namespace chasqui
