// Sees all that a Scheduler is told and what it plans, for a recorder; and gives again, in a replay, the two answers
// that depend on what tokens mean, which a recording does not say. Implemented in record/. Called by the Scheduler on
// its worker's thread, while it does what it was told: an implementation takes no time that a step would notice. Null
// in a server that records nothing. What comes in is seen before the scheduler acts by it, what comes out afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "core/event.h"
#include "core/types.h"

namespace chasqui {

struct Batch;
struct BatchResult;
struct DiskOrder;
struct DiskOutcome;
struct EncodingOutcome;
struct FoundSnapshot;
struct MovedText;
struct Occupancy;
struct Request;
class Sequence;
struct SlotCopy;

class SchedulerTap {
 public:
  // What was found in one of the slots for a prompt of which parts stand elsewhere.
  struct Moved {
    SlotId& slot;
    MovedText& text;
  };

  virtual ~SchedulerTap() = default;

  // --- in
  virtual void added(const Request& /*request*/) {}
  virtual void cancelled(RequestId /*id*/, TimePoint /*now*/, FinishReason /*reason*/) {}
  virtual void all_cancelled(TimePoint /*now*/) {}
  virtual void all_failed(const Error& /*error*/, TimePoint /*now*/) {}
  virtual void tenant_forgotten(const Tenant& /*tenant*/, std::uint64_t /*ticket*/) {}
  virtual void slots_copied_out(TimePoint /*now*/) {}
  virtual void slots_emptied() {}
  virtual void slot_copy_wanted(std::int32_t /*slot*/, const Tenant& /*tenant*/) {}
  // A client has a copy as well from now on.
  virtual void slot_copied(std::int32_t /*slot*/, const Tenant& /*tenant*/) {}
  virtual void slot_adopted(std::int32_t /*slot*/, const Tenant& /*tenant*/, const SlotCopy& /*copy*/,
                            TimePoint /*now*/) {}
  virtual void found_on_disk(const FoundSnapshot& /*file*/) {}
  virtual void disk_rests() {}
  virtual void disk_flushed() {}
  virtual void disk_done(const DiskOutcome& /*outcome*/, TimePoint /*now*/) {}
  virtual void encoded(const EncodingOutcome& /*outcome*/, TimePoint /*now*/) {}
  virtual void load_asked() {}
  virtual void computed(const Batch& /*batch*/, const BatchResult& /*result*/) {}

  // --- out
  virtual void planned(TimePoint /*now*/, const Batch& /*batch*/) {}
  // What the step has left, after each computed().
  virtual void committed(const Occupancy& /*occupancy*/) {}
  virtual void disk_ordered(std::span<const DiskOrder> /*orders*/) {}
  virtual void finished(RequestId /*id*/, FinishReason /*reason*/) {}

  // --- in and out
  // What a sequence said before, as draft tokens of the step that is being planned.
  virtual void drafted(const Sequence& /*sequence*/, std::vector<Token>& /*tokens*/) {}
  virtual void found_moved(const Sequence& /*waiting*/, Moved /*found*/) {}
};

}  // namespace chasqui
