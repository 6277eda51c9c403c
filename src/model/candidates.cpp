#include "model/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace chasqui {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kBlocksMax = 4096;  // more values make the blocks larger
constexpr float kNone = -std::numeric_limits<float>::infinity();

Candidate candidate(std::size_t index, float logit) {
  return {static_cast<Token>(index), std::min(logit, std::numeric_limits<float>::max()), 0.0};
}

// Sixteen values side by side, in as many registers as the instruction set makes of them.
using Lanes [[gnu::vector_size(64)]] = float;
constexpr std::size_t kLanes = 16;

// The largest value of each block. `a > b ? a : b` takes b where a is NaN.
[[gnu::always_inline]] inline void largest_of_blocks(const float* values, std::size_t blocks, std::size_t width,
                                                     float* out) {
  for (std::size_t block = 0; block < blocks; ++block, values += width) {
    Lanes one = kNone - Lanes{};
    Lanes two = one;
    for (std::size_t i = 0; i < width; i += 2 * kLanes) {
      Lanes a, b;
      std::memcpy(&a, values + i, sizeof a);
      std::memcpy(&b, values + i + kLanes, sizeof b);
      one = a > one ? a : one;
      two = b > two ? b : two;
    }
    one = two > one ? two : one;
    float lanes[kLanes];
    std::memcpy(lanes, &one, sizeof one);
    out[block] = *std::max_element(lanes, lanes + kLanes);
  }
}

using LargestOfBlocks = void (*)(const float*, std::size_t, std::size_t, float*);

void largest_of_blocks_plain(const float* values, std::size_t blocks, std::size_t width, float* out) {
  largest_of_blocks(values, blocks, width, out);
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void largest_of_blocks_avx2(const float* values, std::size_t blocks, std::size_t width,
                                                    float* out) {
  largest_of_blocks(values, blocks, width, out);
}

[[gnu::target("avx512f")]] void largest_of_blocks_avx512(const float* values, std::size_t blocks, std::size_t width,
                                                         float* out) {
  largest_of_blocks(values, blocks, width, out);
}
#endif

// Our own code is built for any x86-64; this pass reads the most memory of all that it does.
LargestOfBlocks fastest_largest_of_blocks() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return largest_of_blocks_avx512;
  if (__builtin_cpu_supports("avx2")) return largest_of_blocks_avx2;
#endif
  return largest_of_blocks_plain;
}

// A row in blocks, of which all that is read at first is the largest value of each.
class Blocks {
 public:
  explicit Blocks(std::span<const float> logits) : logits_(logits) {
    static const LargestOfBlocks largest_of = fastest_largest_of_blocks();
    while (logits.size() / width_ > kBlocksMax) width_ *= 2;
    count_ = logits.size() / width_;
    largest_of(logits.data(), count_, width_, largest_.data());
  }

  // The k-th largest of the largest values: at least k values are as large. -infinity when there are fewer blocks.
  float kth(std::size_t k) const {
    if (k > count_) return kNone;
    std::array<float, kBlocksMax> sorted;
    std::copy_n(largest_.begin(), count_, sorted.begin());
    std::nth_element(sorted.begin(), sorted.begin() + k - 1, sorted.begin() + count_, std::greater<>());
    return sorted[k - 1];
  }

  // Calls found(index, value) for every value for which wanted(value) holds, ids ascending; blocks whose largest value
  // is not wanted are skipped. `wanted` must be monotonous and false for -infinity and NaN; found() may narrow it.
  template <class Wanted, class Found>
  void sweep(const Wanted& wanted, const Found& found) const {
    for (std::size_t block = 0; block < count_; ++block) {
      if (wanted(largest_[block])) look(block * width_, (block + 1) * width_, wanted, found);
    }
    look(count_ * width_, logits_.size(), wanted, found);
  }

 private:
  template <class Wanted, class Found>
  void look(std::size_t begin, std::size_t end, const Wanted& wanted, const Found& found) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (wanted(logits_[i])) found(i, logits_[i]);
    }
  }

  std::span<const float> logits_;
  std::size_t width_ = kBlock;
  std::size_t count_ = 0;
  std::array<float, kBlocksMax> largest_;
};

}  // namespace

Token largest(std::span<const float> logits) {
  float best = kNone;
  Token token = -1;
  Blocks(logits).sweep([&](float value) { return value > best; },
                       [&](std::size_t index, float value) {
                         best = value;
                         token = static_cast<Token>(index);
                       });
  return token;
}

void gather_top_k(std::span<const float> logits, std::size_t k, std::vector<Candidate>& out) {
  out.clear();
  if (k == 0) return;
  // Collects everything that may be among the k largest; the bound is brought up to date whenever the buffer is full.
  // Of equal ones at the bound those with lower ids have precedence, so that once k are held, only larger ones count.
  const std::size_t full = std::max<std::size_t>(4 * k, 256);
  const Blocks blocks(logits);
  float bound = blocks.kth(k);
  if (bound > kNone) bound = std::nextafter(std::min(bound, std::numeric_limits<float>::max()), kNone);
  const auto shrink = [&] {
    if (out.size() <= k) return;
    const auto kth = out.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(out.begin(), kth, out.end(), more_likely);
    bound = kth->logit;
    out.resize(k);
  };
  blocks.sweep([&](float value) { return value > bound; },
               [&](std::size_t index, float value) {
                 out.push_back(candidate(index, value));
                 if (out.size() >= full) shrink();
               });
  shrink();
}

void gather_at_least(std::span<const float> logits, float least, std::vector<Candidate>& out) {
  out.clear();
  Blocks(logits).sweep([&](float value) { return value >= least && value > kNone; },
                       [&](std::size_t index, float value) { out.push_back(candidate(index, value)); });
}

}  // namespace chasqui
