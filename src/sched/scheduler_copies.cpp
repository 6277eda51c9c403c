// The part of the Scheduler that says when copies are made, and which slots stay cached. All of them are planned: what
// a step copies beside its rows is counted in Batch::copying, and is a part of a decode step at most while there are
// streams. What is longer is copied in pieces that ride along with the steps of the others.
#include <algorithm>

#include "sched/scheduler.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

// Copies of one step take so many decode steps at most beside streams: so their tokens come at most so much later. A
// request waits for what is brought back, as for the prefill of a prompt, which takes as long at a time.
constexpr double kBesideStreams = 0.4;
constexpr double kRestoresBesideStreams = 2;

}  // namespace

// What is left of it for this step.
Duration Scheduler::time_for_copies(const Batch& batch) const { return time_for_copies(batch, kBesideStreams); }

Duration Scheduler::time_for_copies(const Batch& batch, double beside_streams) const {
  StepSize streams;
  for (const auto& sequence : running_) {
    if (sequence->decoding()) streams = streams.with(1, sequence->computed());
  }
  Duration all = std::max(kShortWait, batch.predicted / 2);
  if (streams.rows > 0) {
    const double step = to_seconds(step_time_.predict(Batch::Kind::decode, streams));
    all = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(step * beside_streams));
  }
  return std::max(all - batch.copying, Duration::zero());
}

// A prefill step beside streams has what time they can spare, and no piece of what is copied out.
void Scheduler::copy_pieces(Batch& batch) {
  if (!reuse_.has_pieces()) return;
  const bool streams = std::any_of(running_.begin(), running_.end(), [](const auto& s) { return s->decoding(); });
  if (streams && batch.kind == Batch::Kind::prefill && !batch.rows.empty()) return;
  const Duration time = time_for_copies(batch);
  if (time == Duration::zero() && batch.copying > Duration::zero() && streams) return;
  reuse_.take_pieces(time, batch);
}

// In one pool, and where snapshots are whole, all at once.
void Scheduler::bring_prefix(Sequence& sequence, const Reuse::Prefix& prefix, Batch& batch) {
  const TokenCount length = prefix.match.length;
  if (prefix.in_place) {
    sequence.restored(length);
    if (!prefix.moved.gaps.empty()) sequence.moved_up(prefix.moved.clean);
    return;
  }
  if (reuse_.keeps_slots()) {
    if (prefix.slot.valid()) reuse_.read_slot(prefix.slot);
    sequence.await_prefix();
    return restoring_.push({sequence.id(), sequence.slot(), prefix.match.snapshot, prefix.slot, length});
  }
  sequence.restored(length);
  ledger_.use(sequence.slot(), length);
  batch.restores.push_back({sequence.id(), sequence.slot(), prefix.match.snapshot, length});
}

void Scheduler::take_restores(Batch& batch) {
  if (restoring_.empty()) return;
  const double each = reuse_.restore_seconds(1);
  double tokens = each > 0 ? to_seconds(time_for_copies(batch, kRestoresBesideStreams)) / each : ledger_.cells_total();
  if (!reuse_.knows_restores()) tokens = 0;  // the first piece is a block, whatever the memory is like
  restoring_.plan(static_cast<TokenCount>(std::min(tokens, double{INT32_MAX})), config_.reuse.kv_block, batch,
                  restored_);
  for (const RestoreQueue::Coming& coming : restored_) {
    Sequence* sequence = find_running(coming.request);
    CHECK(sequence != nullptr, "a prefix comes for a sequence that does not run");
    sequence->restored(coming.keep);
    ledger_.use(coming.slot, coming.keep);
  }
  restored_.clear();
  TokenCount copied = 0;
  for (const SlotRestore& restore : batch.restores) copied += restore.end() - restore.from;
  batch.copying += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(reuse_.restore_seconds(copied)));
}

// Copied from until the step was computed: it stays where it is for so long.
void Scheduler::release_sources(const Batch& batch) {
  for (const SlotRestore& restore : batch.restores) {
    if (restore.source.valid() && restore.end() == restore.keep) reuse_.read_no_more(restore.source);
  }
}

// Some are copied out before their slots are needed.
void Scheduler::copy_ahead(TimePoint now) {
  const std::int32_t free = ledger_.slots_total() - ledger_.slots_used() - ledger_.slots_cached();
  reuse_.copy_ahead(static_cast<std::size_t>(free), waiting_.size(), running_.empty() && waiting_.empty(), now);
}

// Nothing more of its prefix comes. True: some of it is in its slot.
bool Scheduler::stop_restore(Sequence& sequence) {
  const auto coming = restoring_.remove(sequence.id());
  if (!coming) return false;
  if (coming->source.valid()) reuse_.read_no_more(coming->source);
  return coming->done > 0;
}

void Scheduler::retire_finished(Keep keep) {
  std::erase_if(running_, [this, keep](const auto& sequence) {
    if (sequence->state() != Sequence::State::finished) return false;
    const bool partly_there = stop_restore(*sequence);
    if (keep == Keep::what_is_worth_it && reuse_.leaves(*sequence)) {
      ledger_.cache(sequence->slot());
      return true;
    }
    if (sequence->computed() > 0 || partly_there) to_trim_.push_back(sequence->slot());
    ledger_.release(sequence->slot());
    return true;
  });
}

void Scheduler::release_given_up() {
  const std::size_t before = to_trim_.size();
  reuse_.take_given_up(to_trim_);
  for (std::size_t i = before; i < to_trim_.size(); ++i) ledger_.release(to_trim_[i]);
}

void Scheduler::slots_were_emptied() {
  if (config_.tap != nullptr) config_.tap->slots_emptied();
  CHECK(running_.empty() && !reuse_.has_pieces());
  reuse_.empty_slots(to_trim_);
  for (const SlotId slot : to_trim_) {
    if (ledger_.is_cached(slot)) ledger_.release(slot);
  }
  to_trim_.clear();
}

}  // namespace chasqui
