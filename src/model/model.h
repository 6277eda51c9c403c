// The seam below the engine: one model context that computes batches. Implemented by LlamaModel (libllama) and
// SimModel (no weights, programmable speed). Owned by one worker and used on its thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "core/batch.h"
#include "core/media.h"
#include "core/types.h"
#include "model/media_encoder.h"

namespace chasqui {

class Heads;

// Constant after construction.
struct ModelShape {
  TokenCount vocabulary = 0;
  std::int32_t slots = 0;         // sequences that can be in the context at once
  TokenCount cells = 0;           // KV positions of the whole context
  TokenCount cells_per_slot = 0;  // a sequence can be this long (all of `cells` when unified)
  std::int32_t rows_max = 0;      // rows of one Batch
  std::int32_t outputs_max = 0;   // … of which can be output rows; at least `slots`
  bool generates = true;          // false: for embeddings alone, and decode() is not called
  bool unified = false;           // one pool of cells, instead of one stream per slot
  bool dense_slots = false;       // a batch is computed in one pass only when its slots are adjacent
  // False for recurrent and hybrid models, whose memory is a state: trim() then takes 0, the whole length, or what
  // `rollback` allows. Only a batch of one slot that says what may cut it (Batch::cut_by) is cut, and any other that
  // fails empties its slots.
  bool trims_anywhere = true;
  // For those: as many of the rows that the last decode computed in a slot can be taken back, once.
  TokenCount rollback = 0;
  // False where a snapshot is good as a whole only: for those models, and where a window slides within a slot, since
  // libllama copies no more than the window. What was restored in such a slot is not to be trimmed but to 0.
  bool cuts_snapshots = true;
  bool shifts = false;       // see Model::shift()
  bool long_rope = false;    // slots are longer than what the rope was made for: some models' keys are others then
  bool reads_media = false;  // see Model::encode()
  // Snapshots are in blocks of so many positions, and a part of what a slot holds can be copied out; 0: only all of it.
  TokenCount kv_block = 0;
  std::size_t kv_token_bytes = 0;  // of a position in such a block
};

// How the computing goes, for metrics.
struct ComputeStats {
  std::int32_t threads = 0;     // compute threads of the last decode; 0: nothing is known
  std::uint64_t cuts = 0;       // decodes that were ended because the threads waited for each other, and computed again
  std::size_t media_bytes = 0;  // of pictures and sounds as they were encoded, of all contexts that share them
};

// Work on one row of several, which do not depend on each other.
class RowJob {
 public:
  virtual ~RowJob() = default;
  // `thread` < Model::row_threads(): no two calls with the same number run at once.
  virtual void run(std::size_t row, std::size_t thread) = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelShape& shape() const = 0;

  // Computes all rows, and returns when they are computed, on whatever device: steps are timed.
  // REQUIRES: at most rows_max rows, ascending slots, positions that continue each slot.
  // On anything but ok the slots of the batch hold what they held before. The adapters of the batch are those that the
  // model was loaded with; to apply others than in the step before takes time.
  virtual DecodeStatus decode(const Batch& batch) = 0;

  // Before a decode() of rows of this unit. True when it had to be encoded for that, since nothing held what encoder()
  // had made of it. The error when it cannot be. Of what several tenants send, each has it encoded for itself, so that
  // none can tell what others have sent.
  virtual Result<bool> encode(const MediaUnit& unit, std::uint32_t tenant);
  // What encodes units ahead of that, the same one for as long as the model lives, asleep or awake; null: nothing does.
  virtual std::shared_ptr<MediaEncoder> encoder() const;

  // The logits of an output row of the last decode() that returned ok: `vocabulary` floats. The caller may change
  // them. Valid until the next decode().
  virtual std::span<float> logits(std::int32_t row) = 0;

  // How many threads for_each_row() uses at most; its caller's is one of them.
  virtual std::size_t row_threads() const { return 1; }
  // Runs the job once for each row below `count`, on the threads of the last decode(), which have nothing to do between
  // two of them; returns when all is done.
  virtual void for_each_row(std::size_t count, RowJob& job) {
    for (std::size_t row = 0; row < count; ++row) job.run(row, 0);
  }

  // Forgets the positions of `slot` from `keep` on; keep == 0 empties it.
  virtual void trim(SlotId slot, TokenCount keep) = 0;

  // The same, for another sequence that goes on there.
  virtual void reuse(SlotId slot, TokenCount keep) { trim(slot, keep); }

  // Forgets the positions from … to-1 of `slot`; those behind them follow the ones before, as they were computed.
  // Another decode comes before anything else. REQUIRES: shape().shifts; the slot holds more than `to` positions
  virtual void shift(SlotId slot, TokenCount from, TokenCount to);

  // What `from` holds is in `to` afterwards, and `from` is empty. REQUIRES: `to` is empty.
  virtual void move(SlotId from, SlotId to) = 0;

  // Each holds afterwards what the other did. REQUIRES: shape().cuts_snapshots
  virtual void exchange(SlotId a, SlotId b) = 0;

  // A copy of the positions from … to-1 that `slot` holds; null when it cannot be made.
  // REQUIRES: they are all that it holds; or there is a kv_block, and `from` is a multiple of it
  virtual KvSnapshotPtr copy_out(SlotId slot, TokenCount from, TokenCount to) = 0;
  KvSnapshotPtr snapshot(SlotId slot, TokenCount tokens) { return copy_out(slot, 0, tokens); }

  // The first `keep` tokens of what was a snapshot of this model are in `slot` afterwards; false: they are not, and it
  // is still empty. REQUIRES: `slot` is empty; cuts_snapshots, or `keep` is all of them.
  virtual bool restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) = 0;
  // The same in pieces, in their order: the positions from … to-1 of those `keep`. Between the pieces the slot holds
  // `keep` positions, of which only the ones that came already mean anything. False: the slot is empty.
  // REQUIRES: there is a kv_block, and `from` is a multiple of it
  virtual bool restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from,
                             TokenCount to) = 0;
  // … of what the slot `source` holds, which stays as it is. REQUIRES: as above, and `source` holds `keep` or more
  virtual bool copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) = 0;

  // Any thread: ends the running decode, and every later one, within milliseconds with DecodeStatus::aborted, until
  // cleared. Without effect on models that cannot be brought back to where they were.
  virtual void request_abort() = 0;
  virtual void clear_abort() = 0;

  // Any thread: operations that decodes have ended so far, which tells a long decode from one that hangs. 0 where that
  // is not known.
  virtual std::uint64_t operations() const { return 0; }

  // Gives its memory back until wake(), and what the slots hold with it; false: it does not do that. While it sleeps it
  // is not to decode. wake() is harmless while it is awake; after an error it sleeps on.
  virtual bool fall_asleep() { return false; }
  virtual Result<void> wake() { return {}; }

  // Its draft heads; null: it has none. Another one after wake().
  virtual Heads* heads() { return nullptr; }

  virtual ComputeStats compute_stats() const { return {}; }
};

inline Result<bool> Model::encode(const MediaUnit&, std::uint32_t) { return false; }
inline std::shared_ptr<MediaEncoder> Model::encoder() const { return nullptr; }
inline void Model::shift(SlotId, TokenCount, TokenCount) { CHECK(false, "this model does not shift"); }

}  // namespace chasqui
