// Prefixes on their way into the slots of sequences that start: from snapshots, or from other slots of the device. In
// pieces, over several steps, so that running streams wait for a piece of it at most; a sequence gets rows when its
// prefix is complete. One after the other, in the order in which they started. Owned by the Scheduler; worker thread
// only; pure. Only where the model copies ranges of positions (ReuseConfig::kv_block).
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/batch.h"

namespace chasqui {

class RestoreQueue {
 public:
  struct Coming {
    RequestId request;
    SlotId slot;
    KvSnapshotPtr snapshot;  // null: from `source`
    SlotId source;
    TokenCount keep = 0;
    TokenCount done = 0;
  };

  void push(Coming coming) { queue_.push_back(std::move(coming)); }
  bool empty() const { return queue_.empty(); }
  // Takes it out; nothing: it is not here.
  std::optional<Coming> remove(RequestId request);
  // Adds the next pieces to the batch, of `tokens` in all, whole blocks but for the last of a prefix, and one block at
  // least. Those that are complete with it are moved to the end of `complete`. REQUIRES: !empty()
  void plan(TokenCount tokens, TokenCount block, Batch& batch, std::vector<Coming>& complete);
  const std::deque<Coming>& all() const { return queue_; }

 private:
  std::deque<Coming> queue_;
};

}  // namespace chasqui
