// What the worker says about each step, for those who watch the batch, and where it says it: a ring of the newest
// kStepsKept records. The worker writes without waiting and without a lock; readers copy a record and then look whether
// it was overwritten meanwhile, so one that is too slow misses records and never reads half of one. Everything is an
// atomic word, so no reading is a race, not even one that is thrown away. Owned by the Worker. One writer, any number
// of readers on any threads; nothing is allocated.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/clock.h"
#include "core/batch.h"
#include "core/types.h"
#include "sched/occupancy.h"

namespace chasqui {

struct StepRecord {
  std::int64_t started = 0;                                 // nanoseconds of the steady clock, when it was planned
  std::int64_t took = 0;                                    // … until its last sample, copies of KV included
  std::int64_t predicted = 0;                               // … of llama_decode alone; 0: nothing was known
  std::int64_t compute = 0;                                 // … that it took
  std::array<std::int32_t, kServiceClasses> decode_rows{};  // by class
  std::array<std::int32_t, kServiceClasses> prompt_rows{};  // by class; decode batches have some too
  std::array<std::int32_t, kServiceClasses> waiting{};      // requests without a slot after the step, by class
  std::array<std::int32_t, kServiceClasses> streams{};      // that wait for their next token after the step, by class
  std::int32_t prefill = 0;                                 // 1: the kind of the batch, if it has rows
  std::int32_t cut = 0;                                     // 1: its rows were not computed, and are planned again
  std::int32_t running = 0;                                 // after the step
  std::int32_t cells = 0;                                   // that hold something after the step
  std::int32_t restored = 0;                                // tokens of prompts that were not computed again
  std::int32_t saved = 0;                                   // … and that were copied into it
  std::int32_t padding = 0;                                 // rows that belong to no sequence
  std::int32_t sequences = 0;                               // whose rows they are
};

// The part of a record that the batch itself says. REQUIRES: the requests of the batch are still there.
StepRecord describe_step(const Batch& batch, const BatchResult& result);
// … and the part that the scheduler says after it.
void add_occupancy(const Occupancy& occupancy, StepRecord& step);

class StepRing {
 public:
  static constexpr std::uint64_t kStepsKept = 1024;

  StepRing() = default;

  // The only writer.
  void write(const StepRecord& record);

  // Steps written so far: their numbers are 1 … written().
  std::uint64_t written() const { return written_.load(std::memory_order_acquire); }
  // False when it was overwritten, or is yet to come.
  bool read(std::uint64_t number, StepRecord& record) const;

 private:
  static_assert(sizeof(StepRecord) % sizeof(std::uint64_t) == 0);
  using Words = std::array<std::uint64_t, sizeof(StepRecord) / sizeof(std::uint64_t)>;

  struct Place {
    std::atomic<std::uint64_t> version{0};  // twice the number of the record; one less while that is being written
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words{};
  };

  std::array<Place, kStepsKept> places_;
  std::atomic<std::uint64_t> written_{0};
};

}  // namespace chasqui
