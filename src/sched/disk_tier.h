// The tier below the prefix cache: decides what goes to files and what comes back from them. Pure: what is to be done
// is an order, carried out by engine/snapshot_disk, and what came of it is told to done(). Owned by Reuse; worker
// thread.
//
// What is written:
//   what had to leave host memory   from a queue of limited bytes; when writing is slower, the oldest in it is dropped
//   what leaves next                while the disk has nothing else to do, as much as the queue holds, so that several
//                                   that leave at once are not more than the queue takes
//   while nothing else is to do     the newest in memory that is not on disk, one after the other, so that an end
//                                   without notice costs little; not what has grown by less than a third since
//   at the end                      everything that is not on disk, most valuable first
// What is read: the file with more of a newcomer's prefix than memory has, when that is quicker than computing the
// difference. Room for it in memory is made before. A file that cannot be read is forgotten and removed.
//
// A read that takes ten times as long as it should, and five seconds at least, is late: no request waits for it any
// more, and no read begins until it has come back, since the disk may hang. What comes back is good as ever.
//
// What nodes share is read like a file, where that saves more than the file that is here; a store that is slow or hangs
// has nothing to do with reads of the folder, nor they with it. After a read that the store did not answer, none of
// them begins for half a minute, and what it is to have stays known. What other nodes have written and removed comes
// as outcomes that nothing was ordered for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/disk_order.h"
#include "cache/prefix_cache.h"
#include "cache/snapshot_store.h"

namespace chasqui {

struct DiskLimits {
  std::uint64_t bytes = 0;      // of all files
  std::size_t queue_bytes = 0;  // of host memory for what waits to be written
  std::uint32_t worker = 0;     // whose tier it is, of so many that share the folder
  std::uint32_t workers = 1;
  HoldingLog* holdings = nullptr;  // see SnapshotStore::Limits
  bool ahead = true;               // what leaves memory next is written before it does
};

class DiskTier {
 public:
  struct Wait {
    std::uint64_t file = 0;  // 0: none
    bool own = false;        // else it is another one's, and then it is time to ask again
  };

  struct Stats {
    SnapshotStore::Stats store;
    std::size_t queue = 0;        // snapshots that wait to be written
    std::size_t queue_bytes = 0;  // … and the one that is being written, where the cache does not have them any more
    std::uint64_t dropped = 0;    // not written, because others came faster
    std::uint64_t refused = 0;    // files that were good, but not for the model
    std::uint64_t late = 0;       // reads that are or were
  };

  // `cache` outlives the tier.
  DiskTier(const DiskLimits& limits, bool cut_anywhere, PrefixCache& cache);

  // --- at the start

  // … or by another node, at any time, and then it may be known already.
  void found(FoundSnapshot file) { store_.found(std::move(file)); }

  // --- when requests come and go

  // What this tenant of PrefixKey is called in files. Entries of tenants that have no such name are never written.
  // Adapters need none: their id is the same after a restart.
  void name(std::uint32_t tenant, std::uint64_t lasting) { names_[tenant] = lasting; }
  // Nothing of the tenant with this lasting name is on disk any more, with whatever adapters, nor gets there of what
  // has left memory. Returns how many files there were.
  // With a ticket, an order to sync carries it as soon as all of them have been removed, also those that are being
  // written or read now. What nodes share is forgotten, too, but not counted.
  std::size_t forget(std::uint64_t tenant, std::uint64_t ticket = 0);
  // The outcome of that order has not come back yet.
  bool erasing(std::uint64_t ticket) const { return erasures_.contains(ticket); }
  bool erasing() const { return !erasures_.empty(); }
  // What a read is to save.
  struct Worth {
    TokenCount known = 0;                 // so many tokens are in memory
    double row_seconds = 0;               // what it takes to compute one; 0: that is not known yet
    double restore_seconds_per_byte = 0;  // to bring KV from memory into a slot
  };
  // Whether there is a file worth waiting for, and until which file has been read.
  Wait read(PrefixKey key, std::span<const Token> tokens, TokenCount most, const Worth& worth);
  // Before a step: finds the reads that are late.
  void look_at_reads(TimePoint now);
  // It was ordered to be read, and has not come back.
  bool asked(std::uint64_t file) const { return reading_.contains(file); }
  // A request may wait for it.
  bool reading(std::uint64_t file) const {
    const auto found = reading_.find(file);
    return found != reading_.end() && !found->second.late;
  }
  bool reads() const {
    return std::ranges::any_of(reading_, [](const auto& each) { return !each.second.late; });
  }
  // A request starts from these tokens, which were in memory: the file that has them is as recent.
  void used(PrefixKey key, std::span<const Token> tokens);
  // The model would not take what memory had of these tokens: a file of the same is removed, also one that is only
  // being written, and none is made of it.
  void refused(PrefixKey key, std::span<const Token> tokens);

  // --- when the cache changes or rests

  // Takes what had to leave memory.
  void take_evicted();
  // There is nothing else to do: perhaps something can be written.
  void rest();
  // Everything is to be written that is not on disk, as far as there is room. Nothing else is, from then on, but what
  // has to leave memory: it would take the room.
  void flush();
  // It can be found, or is being written.
  bool contains(std::uint64_t file) const { return store_.contains(file); }
  // Something is being written, or waits for it.
  bool writing() const { return written_ != 0 || !queue_.empty(); }

  // --- between the threads

  // Moves what is to be done to the end of `orders`; to be done in that order.
  void take_orders(std::vector<DiskOrder>& orders);
  // Everything ordered comes back by this, and what other nodes have done. `row_seconds`: what a token would cost to
  // compute again.
  void done(DiskOutcome outcome, double row_seconds, TimePoint now);

  Stats stats() const;
  bool consistent() const;

 private:
  struct Reading {
    PrefixKey key;
    LastingKey lasting;
    std::size_t reserved = 0;
    double expected = 0;     // that it should take
    TimePoint due = kNever;  // late from then on
    bool in_vain = false;    // what it has is not to be used, and it goes
    bool late = false;
  };
  struct Waiting {
    LastingKey key;
    std::vector<Token> tokens;
    KvSnapshotPtr kv;
    std::size_t owned = 0;  // bytes that the cache does not count
  };

  // Of reads: from the folder, and of what nodes share.
  struct Pace {
    double seconds = 0;  // what a read costs however short the file is
    double seconds_per_byte = 0;
    Duration late_after{};  // at least
  };
  struct Candidate {
    SnapshotStore::Match match;
    double gain = 0;
  };

  // What forget() has still to wait for.
  struct Erasure {
    std::vector<std::uint64_t> files;
    bool ordered = false;  // to be synced
  };

  std::optional<LastingKey> lasting(PrefixKey key) const;
  void forget_file(std::uint64_t file);
  void drop_waiting(const std::function<bool(const Waiting&)>& which);
  Pace& pace_of(std::uint64_t file) { return paces_[is_shared_file(file) ? 1 : 0]; }
  std::optional<Candidate> candidate(const SnapshotStore::Match& match, const Worth& worth);
  TimePoint due_in(double expected, std::uint64_t file);
  bool fits_below(const PrefixCache::Kept& kept) const;
  void enqueue(PrefixCache::Kept kept, std::size_t owned);
  void write_ahead();
  void start_write(std::vector<DiskOrder>& writes);
  void done_reading(DiskOutcome& outcome, double row_seconds, TimePoint now);
  void done_writing(const DiskOutcome& outcome);

  const DiskLimits limits_;
  PrefixCache& cache_;
  SnapshotStore store_;
  std::unordered_map<std::uint32_t, std::uint64_t> names_;
  std::map<std::uint64_t, Reading> reading_;
  std::deque<Waiting> queue_;
  std::size_t queue_owned_ = 0;    // bytes, the write that runs included
  std::uint64_t written_ = 0;      // the file that is being written; 0: none
  std::size_t written_owned_ = 0;  // … and how much of queue_owned_ it is
  bool written_in_vain_ = false;   // … and it goes as soon as it is there
  bool flushed_ = false;
  std::vector<DiskOrder> orders_;  // reads and touches
  std::vector<PrefixCache::Kept> evicted_;
  std::vector<std::uint64_t> removals_;
  std::map<std::uint64_t, Erasure> erasures_;  // by ticket
  std::array<Pace, 2> paces_;
  TimePoint shared_from_{};  // nothing that nodes share is read before
  std::uint64_t dropped_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t late_ = 0;
  TimePoint now_{};  // as of the last look_at_reads()
};

}  // namespace chasqui
