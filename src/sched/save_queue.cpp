#include "sched/save_queue.h"

#include <algorithm>

#include "base/error.h"

namespace chasqui {

bool SaveQueue::contains(RequestId request) const {
  return std::ranges::find(queue_, request, &Save::request) != queue_.end();
}

std::pair<const SaveQueue::Save*, TokenCount> SaveQueue::match(PrefixKey key, std::span<const Token> tokens,
                                                               TokenCount most) const {
  std::pair<const Save*, TokenCount> best{nullptr, 0};
  tokens = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(std::max(most, 0))));
  for (const Save& save : queue_) {
    if (save.key != key) continue;
    const auto end = std::ranges::mismatch(tokens, save.tokens).in1;
    const auto length = static_cast<TokenCount>(end - tokens.begin());
    if (length > best.second) best = {&save, length};
  }
  return best;
}

TokenCount SaveQueue::plan(TokenCount tokens, TokenCount block, Batch& batch) {
  CHECK(!all_planned());
  const Save& save = next();
  const TokenCount left = save.length() - save.from;
  const TokenCount piece = std::min(left, std::max(tokens / block, 1) * block);
  planned_.push_back(save.from + piece);
  batch.saves.push_back({save.slot, planned_.back(), save.from});
  return piece < left ? 0 : std::max(tokens - piece, 0);
}

std::optional<SaveQueue::Save> SaveQueue::copied(const KvSnapshotPtr& piece) {
  CHECK(!planned_.empty());
  Save& save = queue_.front();
  const TokenCount end = planned_.front();
  planned_.erase(planned_.begin());
  if (piece) {
    save.begin = save.from > 0 ? KvSnapshot::joined(*save.begin, save.from, *piece) : piece;
    save.from = end;
    if (save.from < save.length()) return std::nullopt;
  } else {
    save.begin.reset();
  }
  Save done = std::move(save);
  queue_.pop_front();
  return done;
}

std::size_t SaveQueue::forget(std::uint32_t tenant, std::vector<SlotId>& slots) {
  CHECK(planned_.empty());
  return std::erase_if(queue_, [&](const Save& save) {
    if (save.key.tenant != tenant) return false;
    slots.push_back(save.slot);
    return true;
  });
}

}  // namespace chasqui
