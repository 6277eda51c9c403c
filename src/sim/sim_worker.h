// One worker of a simulation: the real Scheduler, a model that computes nothing and checks everything, what steps cost,
// and perhaps a disk. It has its own time: that of its next plan, or of the end of the step that it computes. Owned by
// the Simulation, whose files change it; one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "sched/scheduler.h"
#include "sim/checked_model.h"
#include "sim/faults.h"
#include "sim/progress_watch.h"
#include "sim/sim_disk.h"
#include "sim/step_cost.h"

namespace chasqui {

struct SimWorker {
  enum class Doing : std::uint8_t {
    rests,     // until something is added
    plans,     // at `now`
    computes,  // until `ends`
  };

  SimWorker(const SchedulerConfig& scheduler_config, const CostConfig& cost_config, const PatienceConfig& patience,
            std::size_t tenants, std::uint64_t seed, SimRequestTable& lives, Faults& faults)
      : scheduler(scheduler_config),
        model(scheduler_config.kv, scheduler_config.rows_max, scheduler_config.reuse.kv_block, lives, faults),
        cost(cost_config, seed),
        watch(patience, tenants, faults) {
    if (scheduler_config.reuse.disk) disk = std::make_unique<SimDisk>(cost_config.disk, seed);
  }

  // When it does something next.
  TimePoint next() const {
    if (doing == Doing::rests) return kNever;
    return doing == Doing::plans ? now : ends;
  }
  // Something was added at `at`: it looks at it as soon as it can.
  void wake(TimePoint at) {
    if (doing == Doing::computes) return;
    if (doing == Doing::rests || waited) now = std::max(looked, at);
    doing = Doing::plans;
    waited = false;
  }
  // What arrives at `at` had better not wait for the end of the step.
  void cut(TimePoint at) {
    if (doing != Doing::computes || status == DecodeStatus::aborted || batch.rows.empty()) return;
    status = DecodeStatus::aborted;
    ends = std::max(at, begins + Duration(1));
  }

  Scheduler scheduler;
  CheckedModel model;
  CostModel cost;
  ProgressWatch watch;
  std::unique_ptr<SimDisk> disk;  // null: none

  Doing doing = Doing::rests;
  TimePoint now{};      // of the next plan, or when the step that is computed was planned
  TimePoint looked{};   // the last plan
  bool waited = false;  // it has work, but could do nothing: `now` is when it looks again

  // The step that is computed.
  Batch batch;
  BatchResult before;  // what copies and drafting take, before the rows
  BatchResult result;
  DecodeStatus status = DecodeStatus::ok;  // … and how it ends
  TimePoint begins{};                      // of its rows
  TimePoint ends{};
  bool computes_rows = false;
  std::vector<RequestId> batch_ids;  // of its parts

  std::uint64_t steps = 0;
  std::size_t accepted = 0;        // requests that have not ended
  std::vector<RequestId> leaving;  // to be cancelled before the next step
  std::vector<DiskOrder> orders;   // scratch
  std::vector<DiskOutcome> read;   // came while it computed
};

}  // namespace chasqui
