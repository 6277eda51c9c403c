// Keeps snapshots of sequences in host memory, so that a prompt which begins like an earlier one is not computed again,
// and knows what running sequences are computing right now, so that no two compute the same at the same time. Owned by
// the Scheduler; worker thread only. Time is an argument. Lookups allocate nothing.
// Invariants: bytes() ≤ limits.bytes and entries ≤ limits.entries, always; bytes() is what is resident, including what
// has left the cache while a lease on it was still held, and what is reserved. A block that several snapshots
// share counts once. What nothing needs any more is freed in pieces, by free_some(), or at once where its room is
// needed: bytes() + unfreed_bytes() ≤ limits.bytes, too, and decisions are the same whether it is freed or not.
//
// What is stored once. Snapshots in blocks share those of a common prefix: insert() replaces the first blocks of what
// it is given by those of an entry that begins with the same tokens, so it does not matter who has copied them, nor
// when.
//
// Which entries are redundant. Where KV can be cut anywhere, a snapshot serves every prefix of its tokens. So an entry
// is redundant when exactly one way leads on from its end: the longer entry there serves all that it did, as the next
// turn of a conversation does for the turn before. A longer entry absorbs it and inherits its hits; a new entry that
// would be redundant is not stored. Where several ways lead on, the entry is a branch point (a system prompt, a
// document that is asked about): it stays, since it is copied faster than any longer one, and outlives them. Where KV
// cannot be cut, only whole entries serve and none is redundant.
//
// Who goes first. GreedyDual-Size-Frequency: priority = clock + hits × cost to compute again / bytes, the clock being
// the highest priority that was ever evicted. What is dear, small and often used stays; what was not used lately falls
// behind the clock and goes. Cost per byte differs little in one model (it grows slowly with the length), so it is
// mostly frequency that ages: each hit is worth about one turnover of the cache, and kHitsMax bounds how long
// yesterday's system prompt survives. A leased entry is passed over: evicting it would free nothing.
#pragma once

#include <algorithm>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cache/block_ledger.h"
#include "cache/counted_memory.h"
#include "cache/prefix_key.h"
#include "cache/radix_tree.h"
#include "core/kv_snapshot.h"
#include "core/types.h"

namespace chasqui {

class HoldingLog;

class PrefixCache {
 public:
  struct Limits {
    std::size_t bytes = 0;         // of snapshots; the index comes on top, see Stats::index_bytes
    std::size_t entries = 65'536;  // bounds the index
    bool cut_anywhere = true;      // false: a snapshot is good for exactly its tokens and what follows them
    bool hand_over = false;        // what has to make room is kept for take_evicted()
    HoldingLog* holdings = nullptr;  // is told what prompts can begin with; outlives the cache; null: nothing is
  };

  struct Match {
    TokenCount length = 0;   // 0: nothing
    EntryId entry;           // the others mean nothing then
    KvSnapshotPtr snapshot;  // restore it, then trim to `length`
  };
  struct PendingMatch {
    TokenCount length = 0;  // 0: no sequence
    RequestId request;
  };

  // All of an entry.
  struct Kept {
    PrefixKey key;
    std::vector<Token> tokens;
    KvSnapshotPtr snapshot;
  };

  enum class Insertion : std::uint8_t {
    stored,   // or took the place of an entry with the same tokens
    covered,  // a longer entry serves all of it
    refused,  // larger than the cache, or than what others do not lease
  };

  struct Stats {
    std::size_t entries = 0;
    std::size_t bytes = 0;        // what is still to be freed included
    std::size_t index_bytes = 0;  // trees and tables
    std::size_t pending = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t tokens_matched = 0;
    std::uint64_t evictions = 0;
    std::uint64_t absorbed = 0;
    std::uint64_t insertions = 0;  // stored
    std::uint64_t refused = 0;
  };

  static constexpr std::int64_t kHitsMax = 16;

  explicit PrefixCache(const Limits& limits, std::pmr::memory_resource* upstream = std::pmr::new_delete_resource());

  // The longest prefix of the tokens, at most `most` of them, that is here. To ask is no use of the entry: see touch().
  Match match(PrefixKey key, std::span<const Token> tokens, TokenCount most) const;
  // The longest prefix of the tokens, at most `most` of them, that any entry begins with, usable or not.
  TokenCount known(PrefixKey key, std::span<const Token> tokens, TokenCount most) const;
  // A sequence starts from this match, be it a hit or a miss. Its entry may have gone since.
  void touch(const Match& match, TimePoint now);
  // `cost`: what it took, or would take, to compute all of it.
  // REQUIRES: the snapshot has exactly these tokens, there are some, and it is not in another entry
  Insertion insert(PrefixKey key, std::span<const Token> tokens, KvSnapshotPtr snapshot, Duration cost, TimePoint now);
  // Forgets all entries of a tenant, with whatever adapter. Returns how many there were.
  std::size_t erase_tenant(std::uint32_t tenant);

  // Forgets this snapshot, which the model will not take, and gives what it was; nothing when it has gone already.
  std::optional<Kept> give_up(const KvSnapshot& snapshot);

  // To be called once a step, and while unfreed_bytes() are left: gives back a bounded part of what has left.
  void free_some() { blocks_.free_some(); }
  std::size_t unfreed_bytes() const { return blocks_.unfreed_bytes(); }

  // --- for the tier below

  // Something that was handed over is not needed any more. Freed as what leaves the cache is, if there is room for it.
  void discard(KvSnapshotPtr snapshot);
  // What made room since the last call, moved to the end of `out`: it is the caller's, and not in bytes() any more.
  void take_evicted(std::vector<Kept>& out);
  // The newest entry that was not asked for by this; nothing when there is none left.
  std::optional<Kept> next_unseen();
  // One of those that leave first when so many bytes are needed, if these are not free; each entry once. None that is
  // larger: while it is written it cannot leave. Looks at a bounded number.
  std::optional<Kept> next_to_leave(std::size_t needed);
  // All entries, most valuable first.
  std::vector<EntryId> by_value() const;
  // REQUIRES: it is one of by_value(), and nothing was changed since
  Kept kept(EntryId id) const;
  // Makes room for what is about to come, and keeps it until unreserve(). False: there is none.
  bool reserve(std::size_t bytes);
  void unreserve(std::size_t bytes);

  // --- what is being computed

  // A running sequence is computing these tokens; until withdraw(), whatever becomes of it.
  // REQUIRES: there are some, and the request has announced nothing else
  void announce(PrefixKey key, std::span<const Token> tokens, RequestId request);
  // It has computed so many of them, and others can wait for a copy. Does nothing when it has announced nothing.
  void computed(RequestId request, TokenCount length);
  // Does nothing when the request has announced nothing.
  void withdraw(RequestId request);
  // Who will have the longest prefix of the tokens, at most `most`: of several one with the least to compute, and of
  // those with the same tokens the first. Finds the asker too if it has announced itself.
  PendingMatch match_pending(PrefixKey key, std::span<const Token> tokens, TokenCount most) const;

  // Resident bytes of snapshots, in the cache or leased since they left it.
  std::size_t bytes() const;
  Stats stats() const;
  // Recounts everything and compares: conservation.
  bool consistent() const;

 private:
  struct Shelf {
    explicit Shelf(std::pmr::memory_resource* memory) : kept(memory), pending(memory) {}
    bool empty() const { return kept.empty() && pending.empty(); }

    RadixTree kept;
    RadixTree pending;  // an entry's id is the number of the request
  };
  using Shelves = std::pmr::unordered_map<PrefixKey, Shelf>;

  struct Rank {
    double priority = 0;
    TimePoint used{};
    EntryId id;
    auto operator<=>(const Rank&) const = default;
  };

  struct Entry {
    PrefixKey key;
    KvSnapshotPtr snapshot;
    Duration cost{};
    std::int64_t hits = 0;
    Rank rank;
    std::uint64_t holding = 0;  // of HoldingLog
    bool said_to_leave = false;
  };

  struct Announced {
    PrefixKey key;
    std::uint64_t holding = 0;  // of what of it is computed
  };

  // What of a tree's answer is usable: length and id.
  std::pair<TokenCount, EntryId> usable(const RadixTree& tree, std::span<const Token> tokens, TokenCount most) const;
  static bool leased(const Entry& entry) { return entry.snapshot.use_count() > 1; }
  double priority_of(const Entry& entry) const;
  void rank_again(Entry& entry, TimePoint now);

  // With the blocks that an entry has of the same tokens in place of its own.
  KvSnapshotPtr sharing(KvSnapshotPtr snapshot, const RadixTree::Match& known) const;
  // Whether evicting what is not leased makes room for `coming` (or for nothing but so many bytes) in one entry more,
  // or instead of `replaced`.
  bool room_for(std::size_t bytes_more, const KvSnapshot* coming, const Entry* replaced) const;
  void make_room(EntryId keep);
  void free_what_is_in_the_way() { blocks_.free_down_to(limits_.bytes - std::min(limits_.bytes, bytes())); }
  void evict(EntryId id);
  bool over_limits() const { return bytes() > limits_.bytes || entries_.size() > limits_.entries; }
  void replace(EntryId id, KvSnapshotPtr snapshot, Duration cost, TimePoint now);
  void absorb_redundant(RadixTree& tree, EntryId by);
  void remove(EntryId id);
  void drop_if_empty(Shelves::iterator shelf);
  bool consistent_shelves() const;

  const Limits limits_;
  CountedMemory memory_;
  Shelves shelves_;  // none is empty
  std::pmr::unordered_map<EntryId, Entry> entries_;
  std::pmr::set<Rank> ranks_;  // least valuable first; one for each entry
  std::pmr::unordered_map<RequestId, Announced> pending_;
  BlockLedger blocks_;             // of entries
  std::pmr::set<EntryId> unseen_;  // with hand_over
  std::vector<Kept> evicted_;      // with hand_over
  std::size_t reserved_bytes_ = 0;
  double clock_ = 0;
  std::uint64_t last_id_ = 0;
  bool others_leave_ = true;  // next_to_leave() may find one that it has not named
  Stats counts_;              // only what counts up
};

}  // namespace chasqui
