// The part of the Scheduler that says when copies are made, and gives back the slots that were kept for them. What a
// finished sequence has left in its slot is copied out in pieces that ride along with the steps of the others.
#include <algorithm>

#include "sched/scheduler.h"

namespace chasqui {
namespace {

// What has left is copied out in pieces of so long, and beside streams for such a part of a decode step at most: so
// their tokens come at most so much later.
constexpr Duration kCopiesAlone = milliseconds(50);
constexpr double kCopiesBesideStreams = 0.4;

}  // namespace

// Zero: none are to be made in this step.
Duration Scheduler::time_for_copies(const Batch& batch) const {
  if (!reuse_.has_pieces()) return Duration::zero();
  const bool streams = std::any_of(running_.begin(), running_.end(), [](const auto& s) { return s->decoding(); });
  if (!streams) return std::max(kCopiesAlone, batch.predicted / 2);
  // A prefill step beside streams has what time they can spare.
  if (batch.kind == Batch::Kind::prefill) return Duration::zero();
  const std::chrono::duration<double> part(to_seconds(batch.predicted) * kCopiesBesideStreams);
  return std::max(std::chrono::duration_cast<Duration>(part), Duration(1));
}

void Scheduler::retire_finished(Keep keep) {
  std::erase_if(running_, [this, keep](const auto& sequence) {
    if (sequence->state() != Sequence::State::finished) return false;
    if (keep == Keep::what_is_worth_it && reuse_.leaves(*sequence)) {
      kept_.push_back(sequence->slot());
      ledger_.unuse(sequence->slot());
      return true;
    }
    if (sequence->computed() > 0) to_trim_.push_back(sequence->slot());
    ledger_.release(sequence->slot());
    return true;
  });
}

void Scheduler::release_copied() {
  const std::size_t before = to_trim_.size();
  reuse_.take_copied(to_trim_);
  for (std::size_t i = before; i < to_trim_.size(); ++i) {
    ledger_.release(to_trim_[i]);
    std::erase(kept_, to_trim_[i]);
  }
}

}  // namespace chasqui
