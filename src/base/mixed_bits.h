// Spreads the bits of a number over all of them: the finaliser of SplitMix64 (Steele, Lea and
// Flood, 2014). Pure; any thread.
#pragma once

#include <cstdint>

namespace chasqui {

constexpr std::uint64_t mixed_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace chasqui
