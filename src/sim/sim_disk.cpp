#include "sim/sim_disk.h"

#include <algorithm>
#include <memory>

namespace chasqui {
namespace {

KvSnapshotPtr copy_of(const KvSnapshot& snapshot) {
  const auto copy = KvSnapshot::with_room(snapshot.size(), snapshot.tokens(), snapshot.block_tokens());
  CHECK(copy != nullptr, "a snapshot that its own shape does not hold");
  for (std::size_t i = 0; i < snapshot.blocks().size(); ++i) {
    std::ranges::copy(snapshot.blocks()[i]->bytes(), copy->writable(i).begin());
  }
  return copy;
}

}  // namespace

std::vector<TimePoint> SimDisk::order(std::vector<DiskOrder>& orders, TimePoint now) {
  std::vector<TimePoint> ends;
  for (DiskOrder& order : orders) {
    if (order.kind == DiskOrder::Kind::remove) files_.erase(order.file);
    if (order.kind == DiskOrder::Kind::remove || order.kind == DiskOrder::Kind::touch) continue;
    DiskOutcome outcome = carry_out(order);
    free_at_ = std::max(free_at_, now) + outcome.took;
    ends.push_back(free_at_);
    outcomes_.push_back(std::move(outcome));
  }
  orders.clear();
  return ends;
}

DiskOutcome SimDisk::carry_out(DiskOrder& order) {
  DiskOutcome outcome;
  outcome.kind = order.kind;
  outcome.file = order.file;
  std::size_t bytes = 0;
  const bool fails = dice_.chance(cost_.failed);
  if (fails) outcome.error = Error{ErrorCode::unavailable, "the simulated disk failed", ""};
  if (order.kind == DiskOrder::Kind::write) {
    outcome.kv = order.kv;
    bytes = order.kv->size();
    if (!fails) files_[order.file] = {order.key, std::move(order.tokens), copy_of(*order.kv)};
  } else {
    const auto found = files_.find(order.file);
    CHECK(found != files_.end(), "a file is read that is not there");
    bytes = found->second.kv->size();
    if (!fails) {
      outcome.key = found->second.key;
      outcome.tokens = found->second.tokens;
      outcome.kv = copy_of(*found->second.kv);
      ++reads_;
    }
  }
  outcome.took = cost_.seek +
                 std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(bytes) * cost_.byte_us * 1000));
  return outcome;
}

DiskOutcome SimDisk::finish() {
  DiskOutcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

}  // namespace chasqui
