// Tells a scheduler again what a recording says that one was told, on the time of the recording, and compares what it
// plans with what was planned then: rows, slots, kinds, sizes, copies, who finishes and how. The real scheduler of this
// program runs, without a model. Pure; one thread.
//
// It ends at the first difference, since what came of the recorded step says nothing of another one. What the scheduler
// reads beside its inputs, and a recording cannot have, is one thing: when a client lets go of a copy of a slot that it
// has fetched (TapKind::slot_copied). A difference after that is said to be perhaps due to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/batch.h"
#include "record/record_format.h"
#include "record/recorded_head.h"

namespace chasqui {

struct ReplayReport {
  RecordedHead head;
  std::uint64_t records = 0;
  std::uint64_t requests = 0;
  std::uint64_t plans = 0;     // that agree
  std::uint64_t steps = 0;     // … that were computed
  std::uint64_t finished = 0;  // requests
  TimePoint began{};
  TimePoint ended{};
  std::optional<std::string> difference;  // the first, with its place
  std::optional<std::string> fault;       // the recording cannot be followed any further: no scheduler does that
  std::string end;                        // why the recording ended before the server did; empty: it did not

  bool agrees() const { return !difference && !fault; }
};

struct ReplayOptions {
  // With each step that was computed, when it was planned, and before the scheduler knows; then the scheduler that
  // does.
  std::function<void(const Batch&, const BatchResult&, TimePoint planned)> computed{};
  std::function<void(const Scheduler&)> committed{};
  // Changes what the scheduler is made with, to see what another setting would have planned first otherwise.
  std::function<void(SchedulerConfig&)> change{};
  // Before each record, for who is to know where a scheduler ended the process.
  std::function<void(std::uint64_t record, std::uint64_t plan)> before{};
};

// What the stream begins with. Errors say what is wrong with it.
Result<RecordedHead> head_of(const RecordStream& stream);

ReplayReport replay(const RecordStream& stream, const ReplayOptions& options = {});

}  // namespace chasqui
