// What sequences that have left their slots still have in them, on its way into the prefix cache: copied out in pieces,
// over several steps, so that running streams wait for a piece of it at most. The slots stay taken until then. One
// after the other, in the order in which they came. Owned by Reuse; worker thread only. Only where the model copies out
// ranges of positions (ReuseConfig::kv_block).
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <utility>
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
  bool contains(RequestId request) const;
  // REQUIRES: !empty()
  Save& front() { return queue_.front(); }

  // Which of them will serve the longest prefix of the tokens, and how much; null: none serves any.
  std::pair<const Save*, TokenCount> match(PrefixKey key, std::span<const Token> tokens, TokenCount most) const;

  // Adds the next piece of the first one to the batch, of `tokens` of them or one block at least.
  // REQUIRES: !empty(), and nothing was planned since the last copied()
  void plan(TokenCount tokens, TokenCount block, Batch& batch);
  bool planned() const { return planned_ > 0; }
  // The piece that was planned; null: it could not be copied. The whole of it when that was the last piece, or when
  // nothing more will come of it: then without `begin`. REQUIRES: planned()
  std::optional<Save> copied(const KvSnapshotPtr& piece);

  // Moves the slots of a tenant's to the end of `slots`, and forgets what was in them. REQUIRES: !planned()
  std::size_t forget(std::uint32_t tenant, std::vector<SlotId>& slots);

 private:
  std::deque<Save> queue_;
  TokenCount planned_ = 0;  // up to which token; 0: nothing
};

}  // namespace chasqui
