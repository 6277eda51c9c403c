// What a grammar leaves no choice about, in tokens: where every text goes on alike, nothing has to be sampled. The
// tokens are those that the tokenizer makes of the text behind the last token, so that the model reads what it would
// have written. Left to be sampled are a token at the end that could be a longer one, or would be others with what may
// follow; a control token, and what is behind it; and all where the last token would not be one by itself. Found once
// for each place of a grammar and token before it, and kept with the masks. One thread at a time.
#pragma once

#include <span>

#include "model/grammar/grammar_masks.h"
#include "model/tokenizer.h"

namespace chasqui {

// The grammar allows each of them, one after the other, and they are no ends of a generation. Valid until the masks
// forget. REQUIRES: the masks are of this tokenizer's vocabulary
std::span<const Token> forced_tokens(GrammarMasks& masks, GrammarMasks::Id state, Token last,
                                     const Tokenizer& tokenizer);

}  // namespace chasqui
