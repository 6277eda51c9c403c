// How many compute threads the next decode should use. ggml's threads meet at a barrier after every operation and spin
// there: where all cores are free, more threads are faster, and where something else runs on one of them, the others
// wait for a thread that is not running (measured: up to a hundred times slower than one thread; docs/threads.md).
//
// Two things are learned from what steps really took. For each load, which number is fastest on free cores: the losers
// are tried again for a small share of the time. And for the machine, how many threads can run at once: a step that
// takes several times what its load usually takes is being strangled, so all loads use fewer threads for a while (the
// ceiling), and more are tried on a short step that is cut soon.
//
// Owned by one LlamaModel; single-threaded; time is an argument.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/clock.h"
#include "core/batch.h"

namespace chasqui {

struct ThreadPlan {
  std::int32_t threads = 1;
  // The decode that takes longer should be ended, and computed again as cut() says.
  Duration patience = Duration::max();
};

class ThreadChoice {
 public:
  static constexpr std::int32_t kAnyNumber = std::numeric_limits<std::int32_t>::max();

  // At most `one_row` threads for a batch of one row and `more_rows` for larger ones; half of that, a quarter … and 1.
  ThreadChoice(std::int32_t one_row, std::int32_t more_rows);
  ThreadChoice(const ThreadChoice&) = delete;
  ThreadChoice& operator=(const ThreadChoice&) = delete;

  // `allowed`: no more threads than that, since other models compute on the same cores.
  ThreadPlan choose(const Batch& batch, TimePoint now, std::int32_t allowed = kAnyNumber);
  // For measuring. What was learned of batches like this one is forgotten.
  void forget(const Batch& batch);
  // … this number, which must be one of numbers().
  ThreadPlan choose_exactly(const Batch& batch, std::int32_t threads);
  // The decode that was chosen for took so long and is done.
  void observe(Duration took, TimePoint now);
  // It was ended because the patience was over: how to compute the same batch again. Another decode to observe.
  ThreadPlan cut(Duration spent, TimePoint now);

  // What a batch of so many rows can choose among, descending.
  std::span<const std::int32_t> numbers(std::size_t rows) const { return rows <= 1 ? one_row_ : more_rows_; }
  std::int32_t most() const { return most_; }
  // No decode uses more threads at the moment, but to try; nor more than the last one was allowed.
  std::int32_t limit() const { return std::min(ceiling_, allowed_); }

 private:
  static constexpr std::size_t kSizes = 12;  // batches of 1, 2, 3-4, 5-8 … rows

  // Batches of about the same cost.
  struct Load {
    std::span<const std::int32_t> numbers;
    std::vector<double> costs;  // seconds for a row with each number of threads, smoothed; 0: not tried yet
    std::size_t best = 0;
    double depth = 0;  // position of their deepest row, smoothed
  };
  enum class Trial { none, fewer, more, ceiling };

  Load& load_of(const Batch& batch);
  void pick(TimePoint now);
  double expect(const Load& load, std::int32_t threads) const;
  double expect(std::int32_t threads) const;
  ThreadPlan plan();
  void learn(double spent, TimePoint now);
  void finish_ceiling_trial(double spent, bool cut, TimePoint now);
  void lower_ceiling(TimePoint now);

  const std::vector<std::int32_t> one_row_;
  const std::vector<std::int32_t> more_rows_;
  std::array<std::array<Load, kSizes>, 2> loads_;
  // All loads share the pauses between trials: the machine is the same, and a request waits for each of them.
  TimePoint next_fewer_{};
  TimePoint next_more_{};
  bool compared_ = false;  // some load has been computed with two numbers of threads

  const std::int32_t most_;
  std::int32_t allowed_ = kAnyNumber;
  std::int32_t ceiling_;
  Duration pause_{};        // between trials of a higher ceiling
  TimePoint next_raise_{};  // when a higher ceiling may be tried
  TimePoint calm_since_{};  // when the ceiling was last raised to the most

  // The decode that observe() or cut() is about.
  Load* load_ = nullptr;
  std::size_t chosen_ = 0;
  Trial trial_ = Trial::none;
  bool decode_ = false;
  double rows_ = 1;
  double depth_ = 0;
  double expected_ = 0;  // seconds; 0: nothing is known
};

}  // namespace chasqui
