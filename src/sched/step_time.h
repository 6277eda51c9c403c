// Predicts how long a step takes, from the steps before: time = rows x cost of a row + context x cost of a cell. A row
// costs less in company, and not even evenly so (kernels like multiples of 4, 16 or 64 rows, and some work from 64 rows
// on only), so both costs are kept for each size of batch. They follow the newest steps. When a machine slows down, all
// sizes do at once, so what the newest two steps both took over their prediction counts for all.
// Owned by the Scheduler; pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "core/batch.h"
#include "core/types.h"

namespace chasqui {

// What a step costs depends on. All rows of one pass look back as far as the deepest of them: without a kernel for
// flash attention, libllama computes what is masked, too.
struct StepSize {
  TokenCount rows = 0;
  TokenCount deepest = 0;  // positions that the deepest row looks back at

  std::int64_t context() const { return static_cast<std::int64_t>(rows) * deepest; }
  // … with `more` rows from `position` on.
  StepSize with(TokenCount more, TokenCount position) const {
    return {rows + more, std::max(deepest, position + more)};
  }
};

class StepTime {
 public:
  // `follows`: PolicyRules::slowdown.
  explicit StepTime(bool follows = true) : follows_(follows) {}

  // Sizes between which the cost of a row is taken to be the same; also the sizes that chunks are cut to.
  static constexpr std::array<TokenCount, 38> kSizes = {
      1,  2,  3,  4,  5,  6,  7,   8,   9,   10,  11,  12,  13,   14,   15,   16,   20,   24,   28,
      32, 40, 48, 56, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 65536};

  // Zero while nothing is known about this kind.
  Duration predict(Batch::Kind kind, StepSize size) const;
  void observe(Batch::Kind kind, StepSize size, Duration took);
  // Seconds of a decode step; where none of about so many rows was seen, as for the next smaller one that was, and more
  // for the other rows.
  double decode_seconds(StepSize size) const;

  bool known(Batch::Kind kind) const { return cost(kind).best_row() > 0; }
  // … and about batches of about so many rows.
  bool seen(Batch::Kind kind, TokenCount rows) const { return cost(kind).row[bucket_of(rows)] > 0; }
  // … and more than once.
  bool settled(Batch::Kind kind, TokenCount rows) const {
    return seen(kind, rows) && !cost(kind).once[bucket_of(rows)];
  }
  // What a batch that takes `predict()` may take at best: one of a size that was long not seen, or only once, may have
  // been slow by chance. A share of the prediction, 1 for what was just seen.
  double hope(Batch::Kind kind, TokenCount rows) const;
  // The largest size of such batches that was seen; 0: none was.
  TokenCount largest_seen(Batch::Kind kind) const { return seen_below(kind, kSizes.back()); }
  // The largest size below that of such batches that was seen; 0: none was.
  TokenCount seen_below(Batch::Kind kind, TokenCount rows) const;
  // Seconds for one prompt row in a batch of the best size; 0 when nothing is known.
  double prompt_row_seconds() const { return cost(Batch::Kind::prefill).best_row(); }
  // … as it was measured, with what rows looked back at then: what rows cost when they are computed again.
  // prompt_row_seconds() may be next to nothing where all was put on the cells.
  double measured_row_seconds() const { return least_of(cost(Batch::Kind::prefill).measured); }
  // … and what one took lately, in batches of whatever size: what rows of a preempted sequence cost.
  double read_row_seconds() const { return read_rows_ > 0 ? read_seconds_ / read_rows_ : 0; }
  // The least that any pass over the weights takes: what a step costs however few rows it has. Zero: nothing is known.
  Duration pass() const;
  // Whether a decode step of `padded` rows takes less than one of `size`, as it does where kernels compute rows by
  // fours and the rest one by one (not those of q4_rows.h). Tried once where it is not known.
  bool padding_pays(StepSize size, TokenCount padded) const;
  // What grammars and chains of samplers take for a token, after the step: a moving average that follows what takes
  // longer at once.
  Duration constraint() const { return constraint_; }
  void constrained(std::int32_t tokens, Duration took);
  // More rows would make each of them no cheaper to speak of.
  bool saturated(TokenCount prompt_rows) const;
  // What the smallest chunk at `position` takes whose rows cost little more than they have to there. Zero: no chunk was
  // seen that is large enough for most kernels.
  Duration cheap_chunk(TokenCount position) const;
  // How many of the `most` rows that follow `position` in one slot to compute in a step that takes at most `budget`, on
  // top of what `batch` has already: all where that fits, else the one of kSizes that brings most rows a second when
  // each such step costs `around` more, the larger of two that are alike. 0 when none fits, or nothing is known.
  TokenCount rows_within(Duration budget, Duration around, StepSize batch, TokenCount position, TokenCount most) const;

 private:
  static constexpr std::size_t kBuckets = kSizes.size();

  struct Cost {
    std::array<double, kBuckets> row{};             // seconds; 0: not seen
    std::array<double, kBuckets> cell{};            // seconds for a row to look back at one position
    std::array<double, kBuckets> measured{};        // a moving average of seconds for a row and what it looked back at
    std::array<std::uint64_t, kBuckets> seen_at{};  // the newest observation, by number; and whether
    std::array<bool, kBuckets> once{};              // … it is the only one
    std::uint64_t observed = 0;
    std::size_t nearest(std::size_t bucket) const;
    double best_row() const { return least_of(row); }
  };

  static double least_of(const std::array<double, kBuckets>& of_sizes);  // that were seen; 0: none was
  static std::size_t bucket_of(TokenCount rows);
  const Cost& cost(Batch::Kind kind) const { return costs_[kind == Batch::Kind::decode ? 0 : 1]; }
  double seconds_of(Batch::Kind kind, StepSize size) const;
  // A chunk whose rows cost more than those of a smaller one was slow by chance, if that was once or long ago: what it
  // may take at best, as a share of the prediction. Else it would never be tried again. 1 for all others.
  double doubt(TokenCount prompt_rows) const;
  double slowdown() const;

  const bool follows_;
  std::array<Cost, 2> costs_;
  Duration constraint_{};
  double read_rows_ = 0;  // of prompts, the newest ones
  double read_seconds_ = 0;
  std::array<double, 2> surprises_{1, 1};  // what the newest two steps took over what their costs said
};

}  // namespace chasqui
