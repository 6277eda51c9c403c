// The seam below the engine: one model context that computes batches. Implemented by LlamaModel (libllama) and
// SimModel (no weights, programmable speed). Owned by one worker and used on its thread only.
#pragma once

#include <span>
#include <string>

#include "core/batch.h"
#include "core/types.h"

namespace chasqui {

// Constant after construction.
struct ModelShape {
  TokenCount vocabulary = 0;
  std::int32_t slots = 0;        // sequences that can be in the context at once
  TokenCount cells = 0;          // KV positions of the whole context
  TokenCount cells_per_slot = 0; // a sequence can be this long (all of `cells` when unified)
  std::int32_t rows_max = 0;     // rows of one Batch
  std::int32_t outputs_max = 0;  // … of which can be output rows; at least `slots`
  bool unified = false;          // one pool of cells, instead of one stream per slot
  // False for recurrent and hybrid models, whose memory is a state: trim() then takes 0 or the whole length only, and
  // a decode that fails empties the slots of its batch.
  bool trims_anywhere = true;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelShape& shape() const = 0;

  // Computes all rows. REQUIRES: at most rows_max rows, ascending slots, positions that continue each slot.
  // On anything but ok the slots of the batch hold what they held before.
  virtual DecodeStatus decode(const Batch& batch) = 0;

  // The logits of an output row of the last decode() that returned ok: `vocabulary` floats. The caller may change
  // them. Valid until the next decode().
  virtual std::span<float> logits(std::int32_t row) = 0;

  // Forgets the positions of `slot` from `keep` on; keep == 0 empties it.
  virtual void trim(SlotId slot, TokenCount keep) = 0;
};

}  // namespace chasqui
