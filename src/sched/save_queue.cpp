#include "sched/save_queue.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace chasqui {

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

void SaveQueue::remove(SlotId slot) {
  CHECK(planned_.empty());
  std::erase_if(queue_, [slot](const Save& save) { return save.slot == slot; });
}

}  // namespace chasqui
