// What cached slots hold (CachedSlots), on its way into the prefix cache: copied out in pieces, over several steps, so
// that running streams wait for a piece of it at most. One after the other, in the order in which they came. Owned by
// Reuse; worker thread only. Only where the model copies out ranges of positions (ReuseConfig::kv_block).
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "cache/prefix_cache.h"
#include "core/batch.h"

namespace chasqui {

class SaveQueue {
 public:
  struct Save {
    RequestId request;
    PrefixKey key;
    SlotId slot;
    std::vector<Token> tokens;
    // The first `from` tokens, which are in host memory already.
    KvSnapshotPtr begin{};
    TokenCount from = 0;
    bool returns = false;  // its client is expected back with more

    TokenCount length() const { return static_cast<TokenCount>(tokens.size()); }
    // What it is worth to keep, in tokens that would be computed again.
    TokenCount worth() const { return returns ? 4 * length() : length(); }
  };

  void push(Save save) { queue_.push_back(std::move(save)); }
  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  // The first without a planned piece. REQUIRES: !all_planned()
  Save& next() { return queue_[planned_.size()]; }

  // Adds the next piece of next() to the batch, of `tokens` of them or one block at least. What is left of `tokens` for
  // pieces of the others; 0 where more of this one has to come. REQUIRES: !all_planned()
  TokenCount plan(TokenCount tokens, TokenCount block, Batch& batch);
  bool all_planned() const { return planned_.size() == queue_.size(); }
  std::size_t pieces() const { return planned_.size(); }  // that were planned
  // The first piece that was planned; null: it could not be copied. The whole of its save when that was the last piece,
  // or when nothing more will come of it: then without `begin`. REQUIRES: pieces() > 0
  std::optional<Save> copied(const KvSnapshotPtr& piece);

  // Forgets what is in this slot. REQUIRES: pieces() == 0
  void remove(SlotId slot);

 private:
  std::deque<Save> queue_;
  std::vector<TokenCount> planned_;  // of the first ones, up to which token; all but the last to their ends
};

}  // namespace chasqui
