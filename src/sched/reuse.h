// What need not be computed again: finds the cached prefix of a sequence that starts, lets those wait whose prefix is
// being computed right now or read from a file, and has copied out what others may want. Owned by the Scheduler, which
// alone changes sequences; pure. What was computed for a request that does not use the cache is never seen here.
//
// Where the model copies ranges of positions and each slot has cells of its own, what a finished sequence has computed
// stays in its slot (CachedSlots) and is copied out, in pieces (SaveQueue), when slots run low. Otherwise a slot is
// copied out in a step of its own when
//   its sequence leaves it     finished, cancelled or preempted, and something of it is not in the cache yet
// and in both cases when
//   a request waits for it     as soon as the common part is computed; the sequence goes on
//   it is at a checkpoint      where KV cannot be cut, because only whole states can be used again: at the positions
//                              that plan_checkpoints() chose, and when its prompt is complete
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/prefix_cache.h"
#include "core/batch.h"
#include "core/sequence.h"
#include "sched/cached_slots.h"
#include "sched/disk_tier.h"
#include "sched/moved_text.h"
#include "sched/save_queue.h"
#include "sched/slot_notes.h"
#include "sched/step_plan.h"

namespace chasqui {

class SchedulerTap;

struct ReuseConfig {
  PrefixCache::Limits cache;       // no bytes: nothing is kept, and no request waits
  bool shared_by_tenants = false;  // one tenant's prefixes serve the others; they could tell what others have asked
  std::optional<DiskLimits> disk;  // none: what leaves host memory is gone
  TokenCount kv_block = 0;         // ModelShape::kv_block
  bool waits = true;               // a request waits for its prefix that another computes; see PolicyRules
  std::size_t kv_token_bytes = 0;  // … and kv_token_bytes
  bool keeps_slots = true;         // with kv_block: what sequences leave may stay in their slots
  std::int32_t slots_ready = 0;    // so many are free, or copied out already, when the next request comes
  bool notes_slots = false;        // for copy_of_slot()
  std::int32_t first_slot = 0;     // … what others call this worker's slot 0
  SchedulerTap* tap = nullptr;     // see SchedulerConfig
  HoldingLog* holdings = nullptr;  // is told what is held; outlives the scheduler; null: nothing is
};

// A few slots are copied out before they are needed; where there are fewer than four, only when they are.
constexpr std::int32_t slots_kept_ready(std::int32_t slots) { return slots < 4 ? 0 : slots < 16 ? 1 : slots / 8; }

class Reuse {
 public:
  explicit Reuse(const ReuseConfig& config);

  // --- before a sequence starts

  // Whether `waiting` had better not start yet, because another sequence computes its prefix, and a copy of that is
  // quicker than to compute it again, at `row_seconds` a token (0: not known), or because a file has it that is read
  // sooner.
  bool should_defer(const Sequence& waiting, const RunningSequences& running, double row_seconds);
  // It has been told to wait, and nothing has changed.
  bool waits(const Sequence& waiting, const RunningSequences& running);
  // What a sequence that starts begins with.
  struct Prefix {
    PrefixCache::Match match{};  // without a snapshot where it is in a slot
    SlotId slot{};               // of a cached slot
    bool in_place = false;       // … which the sequence takes, cut to the length of the match
    bool slower = false;         // the cache has one that takes longer to bring back than to compute again
    MovedText moved{};           // in place: with gaps, what is behind them is moved up
  };
  // The best of the prefix cache and the cached slots, and nothing where a token is sooner computed, in `row_seconds`.
  // `slot_free`: it need not take a slot that is cached.
  Prefix choose(const Sequence& waiting, double row_seconds, bool slot_free, TimePoint now);
  // Why `waiting` begins with this prefix and not with more; before started().
  CacheUse explain(const Sequence& waiting, const Prefix& prefix);
  // What it takes to bring back a running sequence that loses its slot: to copy what it holds out and in again, or to
  // compute it again where no copy is kept.
  double swap_seconds(const Sequence& running, double row_seconds) const;
  // It starts with this, be it a hit or a miss.
  void started(const Sequence& sequence, const Prefix& prefix, TimePoint now);

  // --- when it leaves

  // It gives up its slot after this: copied out by the next take_saves(), or, for a slot that another sequence needs at
  // once, in `batch`. True: the slot stays as it is, cached.
  bool leaves(const Sequence& sequence);
  void leaves(const Sequence& sequence, Batch& batch);
  // It has lost tokens that others wait for, and the rest was computed beside them.
  void shifted(const Sequence& sequence);
  // It ends, wherever it is: no request waits for it any more, nor it for another.
  void forget(RequestId request);

  // --- between steps

  // It has just been computed up to a checkpoint of its prompt, or all of the prompt.
  void checkpoint_computed(const Sequence& sequence);
  // A step has been computed, and who ended in it has left: what a request waits for is copied out before the next one.
  void step_computed(const RunningSequences& running);
  // A step begins: memory of what was forgotten goes back to the system, a part of it.
  void free_some() { cache_.free_some(); }
  bool frees() const { return cache_.unfreed_bytes() > 0; }
  bool has_saves() const { return !left_.empty() || !wanted_.empty(); }
  // Slots are to be copied out in pieces.
  bool has_pieces() const { return !queue_.empty(); }
  // Adds pieces to the batch: what is copied within `time`, or one block. REQUIRES: has_pieces()
  void take_pieces(Duration time, Batch& batch);

  // --- cached slots

  const CachedSlots& slots() const { return slots_; }
  // A sequence goes on in it.
  void take_slot(SlotId slot);
  // Another sequence is being copied from it, or not any more.
  void read_slot(SlotId slot);
  void read_no_more(SlotId slot);
  // One that can be given to any sequence, and is not cached from now on; invalid: none can, but one of them is being
  // copied out. `except` is not to be it.
  SlotId give_away(TimePoint now, SlotId except);
  // This one is in the way: true, and it is not cached from now on, or it is being copied out.
  bool give_up(SlotId slot);
  void moved(SlotId from, SlotId to) { slots_.moved(from, to); }
  // Begins to copy slots out where too few are ready beside `free_slots` for the requests that wait and the next ones,
  // or, with a disk, while nothing else is to do.
  void copy_ahead(std::size_t free_slots, std::size_t waiting, bool rests, TimePoint now);
  // The disk has done something: there may be room in the cache where there was none.
  void disk_has_done() { slots_.try_again(); }
  // All are to be copied out, and what cannot be copied is lost: their memory goes.
  void copy_all_out(TimePoint now);
  // What such slots hold is gone. Moves all of them to the end of `slots`. REQUIRES: !has_pieces()
  void empty_slots(std::vector<SlotId>& slots);
  // Moves the slots that forget_tenant() has given up to the end of `slots`.
  void take_given_up(std::vector<SlotId>& slots);
  // What this takes, to copy so many tokens out of a slot, or into one.
  double save_seconds(TokenCount tokens) const;
  bool knows_restores() const { return knows_restores_; }  // one was timed
  double restore_seconds(TokenCount tokens) const { return copy_seconds_per_byte_ * bytes_per_token_ * tokens; }

  // What is to be copied out before anything else happens to the slots.
  void take_saves(const RunningSequences& running, Batch& batch);
  // Keeps what was copied out. `row_seconds`: what a token would cost to compute again.
  void commit(const Batch& batch, const BatchResult& result, double row_seconds, TimePoint now);

  // Nothing of this tenant is found any more, or of all where they share, neither in memory nor on disk. Returns how
  // many copies of sequences there were. With a ticket, see DiskTier::forget().
  std::size_t forget_tenant(const Tenant& tenant, std::uint64_t ticket = 0);

  // --- slots by their numbers, where they are noted

  // Sequences have left whose copies are still to be made.
  bool has_left() const { return !left_.empty() || !queue_.empty() || !wanted_.empty(); }
  // copy_of_slot() will be asked for: what it is to tell is copied out, wherever it is now.
  void want_copy_of_slot(std::int32_t slot, const Tenant& tenant, const RunningSequences& running);
  // What the tenant's latest sequence in this slot has left. REQUIRES: !has_left(), and no step is running
  SlotCopy copy_of_slot(std::int32_t slot, const Tenant& tenant) const;
  // Keeps a copy that was saved earlier, as what this slot had last. Nothing of it is believed but what the cache
  // needs: whether the model takes it shows when a request begins with it. False: it does not fit.
  bool adopt_slot(std::int32_t slot, const Tenant& tenant, SlotCopy copy, double row_seconds, TimePoint now);

  // --- the disk; null: there is none

  DiskTier* disk() { return disk_ ? &*disk_ : nullptr; }
  const DiskTier* disk() const { return disk_ ? &*disk_ : nullptr; }

  PrefixCache::Stats cache_stats() const { return cache_.stats(); }
  // How often a request was told to wait for another's prefix, so far.
  std::uint64_t waits_begun() const { return waits_begun_; }
  bool consistent() const { return cache_.consistent() && (!disk_ || disk_->consistent()); }
  bool keeps_slots() const { return config_.kv_block > 0 && config_.keeps_slots; }

  // What this tenant is called in files; none: nothing of it is kept there.
  std::optional<std::uint64_t> lasting_name(const Tenant& tenant) const;

 private:
  // Nothing: it waited, and may ask again.
  struct Awaited {
    RequestId source{};
    TokenCount length = 0;
    std::uint64_t file = 0;  // not 0: it is read, and the others mean nothing
  };
  using Save = SaveQueue::Save;  // on its way into the cache

  Prefix find(const Sequence& waiting, double row_seconds);
  Prefix choose_as_it_stands(const Sequence& waiting, double row_seconds, bool slot_free, TimePoint now);
  Prefix find_moved(const Sequence& waiting);
  // States that can only be used whole are not brought back bit by bit as they were computed.
  bool uses_cache(const Request& request) const {
    return config_.cache.bytes > 0 && request.use_cache && (!request.deterministic || config_.cache.cut_anywhere);
  }
  PrefixKey key_of(const Request& request) const;
  void name_on_disk(const Request& request);
  bool waits_for_source(const Sequence& waiting, std::span<const Token> tokens, TokenCount known,
                        const RunningSequences& running, double row_seconds);
  bool waits_for_file(const Sequence& waiting, std::span<const Token> tokens, TokenCount known, double row_seconds);
  std::span<const Token> tokens_of(const Sequence& sequence);
  bool worth_saving(const Sequence& sequence);
  bool fits(TokenCount tokens) const;
  bool quicker_to_copy(const Sequence& source, TokenCount gain, double row_seconds) const;
  Save save_of(const Sequence& sequence) const;
  void keep_slot(const Sequence& sequence);
  void copy_out(SlotId slot);
  void note_slot(const Sequence& sequence);
  void expect_nothing_of(RequestId source);
  void give_up_refused(const Batch& batch, const BatchResult& result);
  void learn_sizes(const KvSnapshot& snapshot);
  void learn_restoring(const Batch& batch, const BatchResult& result);
  void share_begin(Save& save);
  void give(Save save, Batch& batch);
  void keep_copied(Save& whole, double row_seconds, TimePoint now);
  bool keep(const Save& save, KvSnapshotPtr snapshot, double row_seconds, TimePoint now);
  void learn_saving(const BatchResult& result);

  const ReuseConfig config_;
  PrefixCache cache_;
  std::optional<DiskTier> disk_;
  std::unordered_map<RequestId, Awaited> awaiting_;  // by the one that waits
  std::set<RequestId> has_read_;                     // waited for their file; once is enough, whatever came of it
  std::set<RequestId> wanted_;                       // running ones to copy out; in order, so that runs are repeatable
  std::vector<Save> left_;                           // of sequences that have given up their slots
  std::vector<Save> saving_;                         // of the running step, as in Batch::saves
  CachedSlots slots_;
  SaveQueue queue_;               // of cached slots; its next piece comes behind `saving_`
  std::vector<SlotId> given_up_;  // were cached
  SlotNotes notes_;
  std::vector<Token> scratch_;
  double copy_seconds_per_byte_;  // into a slot
  bool knows_restores_ = false;
  double save_seconds_per_byte_ = 0;  // out of one; 0: not known
  double bytes_per_token_;            // of the newest snapshot; 0: not known
  TokenCount too_long_ = INT32_MAX;   // where KV cannot be cut: the fewest tokens that were larger than the cache
  double copies_last_ = 1;            // share of what sequences had when they lost their slots, that they get back
  std::uint64_t waits_begun_ = 0;
};

}  // namespace chasqui
