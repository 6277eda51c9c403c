#include "publish/block_hash.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/random_bits.h"

namespace chasqui::publish {
namespace {

class SipState {
 public:
  explicit SipState(BlockHasher::Secret secret)
      : v0_(secret.first ^ 0x736f6d6570736575u),
        v1_(secret.second ^ 0x646f72616e646f6du),
        v2_(secret.first ^ 0x6c7967656e657261u),
        v3_(secret.second ^ 0x7465646279746573u) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    mix();
    mix();
    v0_ ^= word;
  }
  std::uint64_t result() {
    v2_ ^= 0xFF;
    for (int i = 0; i < 4; ++i) mix();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
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
};

}  // namespace

BlockHasher::Secret BlockHasher::new_secret() {
  RandomBits bits;
  return {bits(), bits()};
}

BlockHash BlockHasher::operator()(BlockHash parent, std::uint64_t adapters, std::span<const Token> tokens) const {
  std::vector<std::uint64_t> words{parent, adapters};
  words.reserve(2 + (tokens.size() + 1) / 2);
  for (std::size_t i = 0; i < tokens.size(); i += 2) {
    const std::uint64_t after = i + 1 < tokens.size() ? static_cast<std::uint32_t>(tokens[i + 1]) : 0;
    words.push_back(static_cast<std::uint32_t>(tokens[i]) | after << 32);
  }
  return std::max<BlockHash>(siphash(secret_, words) & mask_, 1);
}

std::uint64_t siphash(BlockHasher::Secret secret, std::span<const std::uint64_t> words) {
  SipState state(secret);
  for (const std::uint64_t word : words) state.add(word);
  state.add(static_cast<std::uint64_t>(words.size() * 8) << 56);  // how many bytes, as its last word says
  return state.result();
}

}  // namespace chasqui::publish
