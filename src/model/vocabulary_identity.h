// What the tokens of a model mean, as a checksum: the text of each. Tokens that were read or generated with one model
// may be given to another one of the same vocabulary, as after a training that went on, or another quantization. Pure;
// tens of milliseconds for a large vocabulary, so never on the loop.
#pragma once

#include "base/checksum.h"
#include "model/tokenizer.h"

namespace chasqui {

Checksum identify_vocabulary(const Tokenizer& tokenizer);

}  // namespace chasqui
