// The disk of a simulated worker: carries out the orders of a DiskTier one after the other, each in the time that its
// bytes take. What is in a file is a copy of its own, so that what comes back does not depend on what is in memory.
// Owned by a SimWorker; one thread.
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "cache/disk_order.h"
#include "sim/random.h"
#include "sim/step_cost.h"

namespace chasqui {

class SimDisk {
 public:
  SimDisk(const DiskCost& cost, std::uint64_t seed) : cost_(cost), dice_(seed, 9) {}

  // Takes all `orders`; gives the times at which those end that have an outcome.
  std::vector<TimePoint> order(std::vector<DiskOrder>& orders, TimePoint now);
  // Of the order that ends next. REQUIRES: one is under way
  DiskOutcome finish();
  std::size_t under_way() const { return outcomes_.size(); }
  // Snapshots that came back from it, so far.
  std::uint64_t reads() const { return reads_; }

 private:
  struct File {
    LastingKey key;
    std::vector<Token> tokens;
    KvSnapshotPtr kv;
  };

  DiskOutcome carry_out(DiskOrder& order);

  const DiskCost cost_;
  Random dice_;
  std::map<std::uint64_t, File> files_;
  std::deque<DiskOutcome> outcomes_;
  TimePoint free_at_{};
  std::uint64_t reads_ = 0;
};

}  // namespace chasqui
