#include "sched/step_time.h"

#include <algorithm>
#include <utility>

#include "sched/moving_average.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

// Cells that are taken to cost as much as one row until the first steps tell better; scales the two against each other.
constexpr double kCellsPerRow = 1000;
// Rows of a chunk are cheap where each costs at most so many times the least.
constexpr double kCheap = 1.08;
// What rows of prompts take is told by about so many of the newest ones.
constexpr double kRowsAveraged = 4 * kMicroBatch;

}  // namespace

std::size_t StepTime::bucket_of(TokenCount rows) {
  const auto at = std::lower_bound(kSizes.begin(), kSizes.end(), rows) - kSizes.begin();
  return std::min(static_cast<std::size_t>(at), kBuckets - 1);
}

// The nearest size that was seen stands in for one that was not: the smaller one first, whose rows cost rather more.
// kBuckets when none was.
std::size_t StepTime::Cost::nearest(std::size_t bucket) const {
  for (std::size_t i = bucket + 1; i-- > 0;) {
    if (row[i] > 0) return i;
  }
  for (std::size_t i = bucket + 1; i < kBuckets; ++i) {
    if (row[i] > 0) return i;
  }
  return kBuckets;
}

double StepTime::least_of(const std::array<double, kBuckets>& of_sizes) {
  double best = 0;
  for (const double each : of_sizes) {
    if (each > 0 && (best == 0 || each < best)) best = each;
  }
  return best;
}

double StepTime::seconds_of(Batch::Kind kind, StepSize size) const {
  const Cost& known = cost(kind);
  const std::size_t bucket = known.nearest(bucket_of(size.rows));
  if (bucket == kBuckets) return 0;
  return size.rows * known.row[bucket] + static_cast<double>(size.context()) * known.cell[bucket];
}

TokenCount StepTime::seen_below(Batch::Kind kind, TokenCount rows) const {
  for (std::size_t i = bucket_of(rows); i-- > 0;) {
    if (cost(kind).row[i] > 0) return kSizes[i];
  }
  return 0;
}

// The first batch of a size also makes libllama build its graph anew.
double StepTime::hope(Batch::Kind kind, TokenCount rows) const {
  const Cost& known = cost(kind);
  const std::size_t bucket = bucket_of(rows);
  if (known.row[bucket] == 0 || known.once[bucket]) return kUnknown;
  const auto age = static_cast<double>(known.observed - known.seen_at[bucket]);
  return 1 - (1 - kHope) * std::min(1.0, age / kTelling);
}

double StepTime::doubt(TokenCount prompt_rows) const {
  const Cost& known = cost(Batch::Kind::prefill);
  const std::size_t bucket = bucket_of(prompt_rows);
  for (std::size_t i = 0; i < bucket; ++i) {
    if (known.row[i] > 0 && known.row[i] < known.row[bucket]) return hope(Batch::Kind::prefill, prompt_rows);
  }
  return 1;
}

double StepTime::slowdown() const {
  return !follows_ ? 1 : std::clamp(std::min(surprises_[0], surprises_[1]), 1.0, kSurprise);
}

Duration StepTime::predict(Batch::Kind kind, StepSize size) const {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(slowdown() * seconds_of(kind, size)));
}

// One step of normalised least mean squares: the error is split between rows and cells by how much of each there was.
void StepTime::observe(Batch::Kind kind, StepSize size, Duration took) {
  if (size.rows <= 0 || took <= Duration::zero()) return;
  if (kind == Batch::Kind::prefill) {
    const double fading = std::max(0.0, 1 - size.rows / kRowsAveraged);
    read_rows_ = fading * read_rows_ + size.rows;
    read_seconds_ = fading * read_seconds_ + to_seconds(took);
  }
  Cost& known = costs_[kind == Batch::Kind::decode ? 0 : 1];
  const std::size_t bucket = bucket_of(size.rows);
  const std::size_t nearest = known.nearest(bucket);
  double& row = known.row[bucket];
  double& cell = known.cell[bucket];
  const double cells = static_cast<double>(size.context()) / kCellsPerRow;
  const bool second = std::exchange(known.once[bucket], row == 0);
  const double each = to_seconds(took) / size.rows;
  double& measured = known.measured[bucket];
  // The first one was slow for what is done once.
  second&& each < measured ? void(measured = each) : follow_time(each, measured);
  known.seen_at[bucket] = ++known.observed;
  if (row == 0) {
    if (nearest != kBuckets) cell = known.cell[nearest];
    const double rest = to_seconds(took) - static_cast<double>(size.context()) * cell;
    row = std::max(rest, 0.2 * to_seconds(took)) / size.rows;
    return;
  }
  const double predicted = seconds_of(kind, size);
  surprises_ = {to_seconds(took) / predicted, surprises_[0]};
  const double error = std::min(to_seconds(took), kSurprise * predicted) - predicted;
  const double rows = size.rows;
  const double weight = second && error < 0 ? 1 : kQuickWeight;
  const double step = weight * error / (rows * rows + cells * cells);
  row = std::max(row + step * rows, 0.1 * row);
  cell = std::max(cell + step * cells / kCellsPerRow, 0.0);
}

// It rises faster than it falls: a grammar that is new takes long for many tokens, and a stream that is late is worse
// than a prompt that is.
void StepTime::constrained(std::int32_t tokens, Duration took) {
  if (tokens <= 0) return;
  const Duration each = took / tokens;
  constraint_ += (each - constraint_) / (each > constraint_ ? 2 : kLittle);
}

Duration StepTime::pass() const {
  double least = 0;
  for (const Cost& each : costs_) {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      const double step = each.row[i] * kSizes[i];
      if (step > 0 && (least == 0 || step < least)) least = step;
    }
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(slowdown() * least));
}

double StepTime::decode_seconds(StepSize size) const {
  const bool tried = seen(Batch::Kind::decode, size.rows);
  const TokenCount known = tried ? size.rows : std::max(seen_below(Batch::Kind::decode, size.rows), 1);
  const double takes = to_seconds(predict(Batch::Kind::decode, {known, size.deepest}));
  return takes * (1 + kUnknown * (size.rows - known) / known);
}

bool StepTime::padding_pays(StepSize size, TokenCount padded) const {
  const Cost& known = cost(Batch::Kind::decode);
  if (known.row[bucket_of(size.rows)] == 0) return false;
  if (known.row[bucket_of(padded)] == 0) return true;
  return seconds_of(Batch::Kind::decode, {padded, size.deepest}) < seconds_of(Batch::Kind::decode, size);
}

bool StepTime::saturated(TokenCount prompt_rows) const {
  const Cost& known = cost(Batch::Kind::prefill);
  const double row = known.row[bucket_of(prompt_rows)];
  if (row == 0) return prompt_rows >= kUsualRows;
  return row <= kBetter * known.best_row();
}

Duration StepTime::cheap_chunk(TokenCount position) const {
  const auto row_at = [&](std::size_t bucket) {
    return seconds_of(Batch::Kind::prefill, {kSizes[bucket], position}) / kSizes[bucket];
  };
  const Cost& known = cost(Batch::Kind::prefill);
  if (largest_seen(Batch::Kind::prefill) < kUsualRows) return {};
  double best = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (known.row[i] > 0 && (best == 0 || row_at(i) < best)) best = row_at(i);
  }
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (known.row[i] > 0 && row_at(i) <= kCheap * best) return predict(Batch::Kind::prefill, {kSizes[i], position});
  }
  return {};
}

TokenCount StepTime::rows_within(Duration budget, Duration around, StepSize batch, TokenCount position,
                                 TokenCount most) const {
  if (!known(Batch::Kind::prefill)) return 0;
  const auto takes = [&](TokenCount rows) {
    return doubt(batch.rows + rows) * slowdown() * seconds_of(Batch::Kind::prefill, batch.with(rows, position));
  };
  if (most <= 0 || takes(most) <= to_seconds(budget)) return std::max(most, 0);
  // What is before `position` is looked back at by all rows however they are cut; only that tells sizes apart fairly.
  const auto rate_of = [&](TokenCount rows) {
    const StepSize size{batch.rows + rows, std::max(batch.deepest, position)};
    return rows / (doubt(size.rows) * seconds_of(Batch::Kind::prefill, size) + to_seconds(around));
  };
  TokenCount best = 0;
  double best_rate = 0;
  // Not monotone: 64 rows can be faster than 48, and 12 than 16.
  for (std::size_t i = kBuckets; i-- > 0;) {
    const TokenCount rows = kSizes[i] - batch.rows;
    // The sizes between are for decode steps.
    if (kSizes[i] > 2 * kKernelRows && kSizes[i] % kKernelRows != 0) continue;
    if (rows <= 0 || rows >= most || takes(rows) > to_seconds(budget)) continue;
    const double rate = rate_of(rows);
    if (rate <= kBetter * best_rate) continue;
    best = rows;
    best_rate = rate;
  }
  return best;
}

}  // namespace chasqui
