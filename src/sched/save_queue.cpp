#include "sched/save_queue.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace chasqui {

void SaveQueue::plan(TokenCount tokens, TokenCount block, Batch& batch) {
  CHECK(!empty() && planned_ == 0);
  const Save& save = queue_.front();
  const TokenCount left = save.length() - save.from;
  const TokenCount whole = std::max(tokens / block, 1) * block;
  planned_ = save.from + std::min(left, whole);
  batch.saves.push_back({save.slot, planned_, save.from});
}

std::optional<SaveQueue::Save> SaveQueue::copied(const KvSnapshotPtr& piece) {
  CHECK(planned_ > 0);
  Save& save = queue_.front();
  if (piece) {
    save.begin = save.from > 0 ? KvSnapshot::joined(*save.begin, save.from, *piece) : piece;
    save.from = std::exchange(planned_, 0);
    if (save.from < save.length()) return std::nullopt;
  } else {
    save.begin.reset();
    planned_ = 0;
  }
  Save done = std::move(save);
  queue_.pop_front();
  return done;
}

void SaveQueue::remove(SlotId slot) {
  CHECK(planned_ == 0);
  std::erase_if(queue_, [slot](const Save& save) { return save.slot == slot; });
}

}  // namespace chasqui
