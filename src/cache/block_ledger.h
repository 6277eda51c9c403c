// Counts the bytes of snapshots that share blocks: each block once, for as long as a snapshot that is held has it or
// a lease is taken on one that was held. Owned by the PrefixCache; worker thread only.
//
// What leaves goes back to the system a little at a time: a gigabyte takes tens of milliseconds, and streams would
// wait.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <memory_resource>
#include <unordered_map>

#include "core/kv_snapshot.h"

namespace chasqui {

class BlockLedger {
 public:
  // Of what leaves, so much is freed until the next free_some(), or one block.
  static constexpr std::size_t kFreedAtOnce = std::size_t{64} << 20;

  explicit BlockLedger(std::pmr::memory_resource* memory) : held_(memory), leavers_(memory) {}

  void hold(const KvSnapshot& snapshot);
  // What is not held any more counts until the last lease on it ends. What was handed over does not count any more,
  // whatever other leases it has: it is the taker's to count. REQUIRES: it is held
  void release(KvSnapshotPtr snapshot);
  void hand_over(const KvSnapshot& snapshot);
  // Was never held, or was handed over, and is not needed: what nothing else has of it is freed as if it had left.
  void discard(KvSnapshotPtr snapshot);

  // What has left and is still resident.
  std::size_t unfreed_bytes() const { return unfreed_bytes_; }
  // A step has passed.
  void free_some();
  // At once, and no more than is needed for that.
  void free_down_to(std::size_t unfreed);

  // Without what is only to be freed.
  std::size_t bytes() const;
  std::size_t held_bytes() const { return held_bytes_; }
  // By how much hold() would change bytes().
  std::size_t more_with(const KvSnapshot& snapshot) const;

  // What would be free when held snapshots leave, one after the other.
  class Leaving {
   public:
    // Blocks of `coming` stay; it may be null.
    Leaving(const BlockLedger& ledger, const KvSnapshot* coming);
    // The bytes of this one, which leaves now. With `handed_over` leases do not matter.
    // REQUIRES: it is held, and has not left yet
    std::size_t bytes_of(const KvSnapshot& snapshot, bool handed_over);

   private:
    const BlockLedger& ledger_;
    std::unordered_map<const KvBlock*, std::size_t> holders_;  // that are left; 0: it stays
  };

 private:
  struct Leaver {
    std::weak_ptr<const KvBlock> block;
    std::size_t bytes = 0;
  };

  // The block is not held any more.
  bool drop(const KvBlock& block);
  // REQUIRES: nothing else has it
  void free_soon(KvBlockPtr block);

  std::pmr::unordered_map<const KvBlock*, std::size_t> held_;  // by how many snapshots
  std::pmr::unordered_map<const KvBlock*, Leaver> leavers_;
  std::size_t held_bytes_ = 0;
  std::deque<KvBlockPtr> unfreed_;
  std::size_t unfreed_bytes_ = 0;
  std::size_t may_free_ = kFreedAtOnce;  // until the next free_some()
};

}  // namespace chasqui
