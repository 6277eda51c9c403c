// Which tokens the first steps of a chain of samplers leave, whatever the steps after them do: a chain that is given
// these draws what it would draw from the whole vocabulary, in a tenth of the time. A value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/sampling.h"

namespace chasqui {

struct ChainView {
  std::size_t most = 0;        // likely tokens; 0: all of them
  float min_p = 0;             // above 0: and all that are so likely, relative to the most likely one
  std::int32_t look_back = 0;  // so many of the last tokens may have their logits changed before; -1: all of them
};

ChainView chain_view(const SamplingParams& params);

}  // namespace chasqui
