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
  // REQUIRES: !empty()
  Save& front() { return queue_.front(); }

  // Adds the next piece of the first one to the batch, of `tokens` of them or one block at least.
  // REQUIRES: !empty(), and nothing was planned since the last copied()
  void plan(TokenCount tokens, TokenCount block, Batch& batch);
  bool planned() const { return planned_ > 0; }
  // The piece that was planned; null: it could not be copied. The whole of it when that was the last piece, or when
  // nothing more will come of it: then without `begin`. REQUIRES: planned()
  std::optional<Save> copied(const KvSnapshotPtr& piece);

  // Forgets what is in this slot. REQUIRES: !planned()
  void remove(SlotId slot);

 private:
  std::deque<Save> queue_;
  TokenCount planned_ = 0;  // up to which token; 0: nothing
};

}  // namespace chasqui
