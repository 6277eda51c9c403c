// Reproducible chance: the same numbers for a seed on every machine, which the distributions of <random> do not
// promise. Owned by its user; single-threaded.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>

namespace chasqui::bench {

class RandomSource {
 public:
  // Different names give streams that have nothing to do with each other.
  RandomSource(std::uint64_t seed, std::string_view name) {
    std::uint64_t hash = 14695981039346656037ULL ^ seed;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    generator_.seed(hash);
  }

  // 0 <= x < 1
  double fraction() { return static_cast<double>(generator_() >> 11) * 0x1.0p-53; }
  // low <= x <= high
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(fraction() * static_cast<double>(high - low + 1));
  }
  // The time to the next event of a Poisson process, in seconds.
  double interval(double rate) { return -std::log1p(-fraction()) / rate; }

 private:
  std::mt19937_64 generator_;
};

}  // namespace chasqui::bench
