// The sweeps over a row of logits that sampling is made of, for blocks of 64 logits. Compiled once for each instruction
// set that is worth it, chosen when the process starts; all of them give the same bits. Pure functions; any thread.
//
// NaN counts as no token: it wins no comparison and weighs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace chasqui {

struct RowKernels {
  static constexpr std::size_t kBlock = 64;
  static constexpr std::size_t kGroup = 256;  // logits that one sum of weights is of: whole blocks
  // What gather() writes may go so far beyond what it found.
  static constexpr std::size_t kSlack = 16;

  const char* name;
  bool (*usable)();

  // The largest of each block.
  void (*maxima)(const float* logits, std::size_t blocks, float* out);
  // Sets what has no bit to -infinity; then the same. A word is a block.
  void (*mask)(float* logits, const std::uint64_t* bits, std::size_t blocks, float* out);
  // The sum of exp((logit - top) * scale) over the logits of each group that are at least `least`; the last group may
  // be shorter. Relative error below 1e-6. `maxima` are those of the blocks. `above` gets the same sums of those that
  // are at least `middle`, and `higher` of those that are at least `high`; null, or `higher` alone: not wanted.
  // REQUIRES: scale ≥ 0, least finite, least ≤ middle ≤ high
  void (*weigh)(const float* logits, const float* maxima, std::size_t blocks, float least, float top, float scale,
                float* sums, float middle, float* above, float high, float* higher);
  // The logits that are at least `least` and not at least `below`, with where they are, counted from `first` on.
  std::size_t (*gather)(const float* logits, const float* maxima, std::size_t blocks, float least, float below,
                        std::uint32_t first, std::uint32_t* places, float* found);
  // The same sums of the logits that are at least `least`, and in `below` of each weight times how far the logit is
  // below `top`; what is so far below that the product is nothing is none. REQUIRES: as weigh()
  void (*surprise)(const float* logits, const float* maxima, std::size_t blocks, float least, float top, float scale,
                   float* sums, float* below);
  // Sets the logits that are at least `high` to -infinity, and the maxima of their blocks anew.
  void (*cap)(float* logits, float* maxima, std::size_t blocks, float high);
  // Weights of a list, as weigh() sums them up; -infinity weighs nothing. REQUIRES: `count` is a multiple of 16
  void (*weights)(const float* logits, std::size_t count, float top, float scale, float* out);
};

// All that were compiled, best last; not all of them are usable on this machine.
std::span<const RowKernels* const> all_row_kernels();
// The best one that is usable.
const RowKernels& row_kernels();

}  // namespace chasqui
