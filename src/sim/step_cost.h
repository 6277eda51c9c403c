// What a step of a model that we do not run would take: a fixed cost for each pass over the weights, a cost for each
// row, and one for each cell that a row attends to. Owned by the simulation; one thread.
//
// Passes are counted as libllama cuts a batch (a stream of cells for each slot): one ubatch takes slots whose ids
// follow each other without a hole, and the same number of rows from each. With one pool for all slots there is one
// pass, but every row walks the cells of everybody.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "sim/random.h"

namespace chasqui {

struct StepCost {
  double pass_us = 0;
  double row_us = 0;
  double cell_us = 0;  // for one row and one cell before it
};

struct DiskCost {
  Duration seek = microseconds(500);  // of each read and write
  double byte_us = 0.05;              // … and for each byte of a simulated snapshot
  double failed = 0;                  // share of them
};

struct CostConfig {
  // A model of 0.5 B parameters, Q4_0, on two cores: 30 ms for one row, 88 for 16, 4.5 s for a prompt of 1,200.
  StepCost decode{26'000, 3'900, 4.1};
  StepCost prefill{26'000, 3'300, 1.0};
  double launch_us = 0;      // for each pass, whatever it computes
  double copy_us = 1;        // for one cell copied out of a slot, or into one
  double adapter_us = 0;     // more, for a step with other adapters than the one before
  double draft_share = 0.1;  // what a draft model's pass and rows take, as a share of the model's
  DiskCost disk;
  bool unified = false;
  double noise = 0;  // sigma of a lognormal factor of each step
  // Now and then another process takes the cores, and all steps are slower.
  double neighbour_factor = 1;
  double neighbour_every_s = 0;  // mean time from one visit to the next; 0: never
  double neighbour_stays_s = 0;  // mean time of a visit
};

class CostModel {
 public:
  CostModel(const CostConfig& config, std::uint64_t seed);

  // `held`: cells that the model holds before the step.
  Duration cost(const Batch& batch, TokenCount held, TimePoint now);
  // What a draft model takes to read, and for its draft tokens; and the heads of the model, to learn of a batch.
  Duration draft_reading(const Batch& batch) const;
  Duration drafting(const Batch& batch) const;
  Duration learning(const Batch& batch) const;
  // Of cells copied before the rows.
  Duration copy(std::int64_t cells) const;
  // Passes over the weights of the last step.
  std::int32_t passes() const { return passes_; }

 private:
  std::int32_t count_passes(const Batch& batch);
  Duration share_of(const StepCost& each, double passes, std::size_t rows) const;
  bool disturbed(TimePoint now);

  const CostConfig config_;
  Random random_;
  std::vector<std::int32_t> left_;  // rows of each part that no pass has taken yet
  std::int32_t passes_ = 0;
  std::uint64_t adapters_ = 0;  // of the last step
  bool visiting_ = false;
  double next_change_s_ = 0;
};

}  // namespace chasqui
