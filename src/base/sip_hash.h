// SipHash-2-4 of 64-bit words: a hash that cannot be steered without its key, for what clients send. Plain values.
// Source of the algorithm: Aumasson and Bernstein, "SipHash: a fast short-input PRF".
#pragma once

#include <bit>
#include <cstdint>

#include "base/random_bits.h"

namespace chasqui {

struct SipKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  // Of unpredictable bits.
  static SipKey random() {
    RandomBits bits;
    const std::uint64_t first = bits();
    return {first, bits()};
  }
};

class SipHash {
 public:
  explicit SipHash(SipKey key)
      : v0_(key.first ^ 0x736f6d6570736575u),
        v1_(key.second ^ 0x646f72616e646f6du),
        v2_(key.first ^ 0x6c7967656e657261u),
        v3_(key.second ^ 0x7465646279746573u) {}

  // The next eight bytes, in little endian.
  void add(std::uint64_t word) {
    ++words_;
    take(word);
  }
  // Once, behind the last word.
  std::uint64_t result() {
    take(words_ * 8 << 56);  // how many bytes, as the last word says
    v2_ ^= 0xFF;
    for (int i = 0; i < 4; ++i) mix();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void take(std::uint64_t word) {
    v3_ ^= word;
    mix();
    mix();
    v0_ ^= word;
  }
  void mix() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32) + v3_;
    v2_ += v1_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t words_ = 0;
};

}  // namespace chasqui
