// Unpredictable random numbers, from the kernel, 256 bytes at a time: std::random_device asks the CPU for each
// number, which takes tens of microseconds in a virtual machine. A generator for the distributions of <random>; each
// thread has its own store, so that values of it are free to make and to copy.
#pragma once

#include <cstdint>
#include <limits>

namespace chasqui {

struct RandomBits {
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() const;
};

}  // namespace chasqui
