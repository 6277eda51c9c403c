#include "sched/restore_queue.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace chasqui {

std::optional<RestoreQueue::Coming> RestoreQueue::remove(RequestId request) {
  const auto found = std::ranges::find(queue_, request, &Coming::request);
  if (found == queue_.end()) return std::nullopt;
  Coming coming = std::move(*found);
  queue_.erase(found);
  return coming;
}

void RestoreQueue::plan(TokenCount tokens, TokenCount block, Batch& batch, std::vector<Coming>& complete) {
  CHECK(!empty());
  TokenCount left = std::max(tokens, block);
  while (!queue_.empty()) {
    Coming& next = queue_.front();
    TokenCount count = next.keep - next.done;
    if (count > left) count = left / block * block;
    if (count == 0) return;
    batch.restores.push_back(
        {next.request, next.slot, next.snapshot, next.keep, next.done, next.done + count, next.source});
    next.done += count;
    left -= count;
    if (next.done < next.keep) return;
    complete.push_back(std::move(next));
    queue_.pop_front();
  }
}

}  // namespace chasqui
