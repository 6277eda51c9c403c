// The simulator's own dice: the same numbers from the same seed with every standard library, which the distributions
// of <random> do not give. xoshiro256**, seeded through splitmix64. A plain value; one thread.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "base/mixed_bits.h"

namespace chasqui {

// A hash of 64 bits in a few cycles.
inline std::uint64_t hash_bits(std::uint64_t value) { return mixed_bits(value + 0x9E3779B97F4A7C15ull); }

class Random {
 public:
  // Different streams of one seed are independent of each other.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) {
    std::uint64_t state = hash_bits(seed) ^ hash_bits(stream * 0xD1342543DE82EF95ull + 1);
    for (std::uint64_t& word : state_) word = hash_bits(state++);
  }

  std::uint64_t bits() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // 0 ≤ unit() < 1
  double unit() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  // REQUIRES: low ≤ high
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(bits() % span);
  }
  bool chance(double probability) { return probability > 0 && unit() < probability; }
  double exponential(double mean) { return -mean * std::log(1.0 - unit()); }
  // Of mean 0 and variance 1: the sum of twelve dice, which needs no function that libraries round differently.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += unit();
    return sum;
  }
  double lognormal(double median, double sigma) { return median * std::exp(sigma * normal()); }

 private:
  static std::uint64_t rotate(std::uint64_t value, int by) { return (value << by) | (value >> (64 - by)); }

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace chasqui
