#include "sim/step_cost.h"

#include <algorithm>
#include <utility>

namespace chasqui {

CostModel::CostModel(const CostConfig& config, std::uint64_t seed) : config_(config), random_(seed, 1) {
  if (config_.neighbour_every_s > 0) next_change_s_ = random_.exponential(config_.neighbour_every_s);
}

Duration CostModel::cost(const Batch& batch, TokenCount held, TimePoint now) {
  passes_ = count_passes(batch);
  double cells = 0;
  if (config_.unified) {
    const auto rows = static_cast<double>(batch.rows.size());
    cells = rows * (held + rows);
  } else {
    for (const BatchPart& part : batch.parts) {
      const double first = batch.rows[static_cast<std::size_t>(part.first_row)].position + 1;
      const std::int32_t rows = part.rows + part.draft_tokens + part.padding;
      cells += rows * (first + 0.5 * (rows - 1));
    }
  }
  const StepCost& each = batch.kind == Batch::Kind::decode ? config_.decode : config_.prefill;
  double us = passes_ * (each.pass_us + config_.launch_us) + static_cast<double>(batch.rows.size()) * each.row_us +
              cells * each.cell_us;
  if (std::exchange(adapters_, id_of(batch.adapters)) != id_of(batch.adapters)) us += config_.adapter_us;
  if (config_.noise > 0) us *= random_.lognormal(1, config_.noise);
  if (disturbed(now)) us *= config_.neighbour_factor;
  return std::chrono::nanoseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(us * 1000)));
}

Duration CostModel::share_of(const StepCost& each, double passes, std::size_t rows) const {
  const double us = passes * (each.pass_us + config_.launch_us) + static_cast<double>(rows) * each.row_us;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(us * config_.draft_share * 1000));
}

Duration CostModel::draft_reading(const Batch& batch) const {
  const std::size_t rows = batch.drafting.reading.size();
  return rows > 0 ? share_of(config_.prefill, 1, rows) : Duration::zero();
}

// A pass for each draft token.
Duration CostModel::drafting(const Batch& batch) const {
  std::int32_t passes = 0;
  std::size_t rows = batch.drafting.rows.size();
  for (const BatchPart& part : batch.parts) {
    passes = std::max(passes, part.draft_tokens);
    rows += static_cast<std::size_t>(part.draft_tokens);
  }
  return share_of(config_.decode, passes, rows);
}

Duration CostModel::learning(const Batch& batch) const { return share_of(config_.prefill, 0, batch.rows.size()); }

Duration CostModel::copy(std::int64_t cells) const {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(cells) * config_.copy_us * 1000));
}

std::int32_t CostModel::count_passes(const Batch& batch) {
  if (config_.unified) return 1;
  left_.clear();
  for (const BatchPart& part : batch.parts) left_.push_back(part.rows + part.draft_tokens + part.padding);
  std::int32_t passes = 0;
  for (std::size_t first = 0; first < left_.size();) {
    if (left_[first] == 0) {
      ++first;
      continue;
    }
    std::size_t end = first;
    std::int32_t rows = left_[first];
    while (end < left_.size() && left_[end] > 0 &&
           batch.parts[end].slot.value - batch.parts[first].slot.value == static_cast<std::int32_t>(end - first)) {
      rows = std::min(rows, left_[end++]);
    }
    for (std::size_t i = first; i < end; ++i) left_[i] -= rows;
    ++passes;
  }
  return passes;
}

bool CostModel::disturbed(TimePoint now) {
  if (config_.neighbour_every_s <= 0) return false;
  while (to_seconds(now.time_since_epoch()) >= next_change_s_) {
    visiting_ = !visiting_;
    next_change_s_ += random_.exponential(visiting_ ? config_.neighbour_stays_s : config_.neighbour_every_s);
  }
  return visiting_;
}

}  // namespace chasqui
