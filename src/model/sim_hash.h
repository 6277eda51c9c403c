// Spreads the bits of a number over all of them, for the simulated engine: the finaliser of splitmix64. Any thread.
#pragma once

#include <cstdint>

namespace chasqui {

constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace chasqui
