// How many compute threads the next decode should use. ggml's threads meet at a barrier after every operation and spin
// there: where all cores are free, more threads are faster, and where something else runs on one of them, the others
// wait for a thread that is not running (measured: up to fifty times slower than one thread). So the numbers of
// threads are compared by what they really took, and the losers are tried again for a small share of the time.
// Owned by one LlamaModel; single-threaded; time is an argument.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "core/batch.h"

namespace chasqui {

class ThreadChoice {
 public:
  // Chooses among `most`, half of it, a quarter … and 1.
  explicit ThreadChoice(std::int32_t most);

  std::int32_t choose(Batch::Kind kind, std::size_t rows, TimePoint now);
  // What the decode after choose() took.
  void observe(Duration took, TimePoint now);

 private:
  static constexpr std::size_t kSizes = 12;  // batches of 1, 2, 3-4, 5-8 … rows

  // Batches of about the same cost.
  struct Load {
    std::vector<double> costs;  // seconds for a row with each number of threads, smoothed; 0: not tried yet
    std::size_t best = 0;
    TimePoint next_fewer{};  // when the next smaller number may be tried again
  };

  std::size_t pick(const Load& load, TimePoint now) const;

  const std::vector<std::int32_t> numbers_;  // descending
  std::array<std::array<Load, kSizes>, 2> loads_;
  // Trying more threads than are free may take long, so all loads share one pause.
  TimePoint next_more_{};

  // The choice that observe() is about.
  Load* load_ = nullptr;
  std::size_t chosen_ = 0;
  std::size_t rows_ = 1;
};

}  // namespace chasqui
