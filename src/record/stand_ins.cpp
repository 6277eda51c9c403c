#include "record/stand_ins.h"

#include <bit>

#include "base/random_bits.h"

namespace chasqui {
namespace {

// No vocabulary is as large.
constexpr std::uint64_t kTokensMax = std::uint64_t{1} << 20;

class Sip {
 public:
  explicit Sip(const StandIns::Secret& secret)
      : v0_(secret.first ^ 0x736f6d6570736575u),
        v1_(secret.second ^ 0x646f72616e646f6du),
        v2_(secret.first ^ 0x6c7967656e657261u),
        v3_(secret.second ^ 0x7465646279746573u) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    turn(2);
    v0_ ^= word;
  }
  std::uint64_t result() {
    v2_ ^= 0xFF;
    turn(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void turn(int times) {
    for (; times > 0; --times) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

StandIns::Secret StandIns::new_secret() {
  RandomBits bits;
  return {bits(), bits()};
}

std::uint64_t StandIns::digest(std::uint64_t before, std::uint64_t next) const {
  Sip sip(secret_);
  sip.add(before);
  sip.add(next);
  sip.add(std::uint64_t{16} << 56);  // the length of both
  return sip.result();
}

// Different tokens at one place are at least `scale` apart, so none of them are equal: up to 2^30 by the offset, less
// than 2^29 by the token, and so never negative.
Token StandIns::next(Place& place, Token token) const {
  const std::uint64_t before = place.digest;
  place.digest = digest(before, static_cast<std::uint32_t>(token));
  if (token == kNoToken) return token;
  // A place of a picture or a sound, whose number tells what is in it, stays such a place.
  constexpr std::uint64_t kPlaces = (std::uint64_t{1} << 31) - 3;
  if (token < 0) return kNoToken - 1 - static_cast<Token>(place.digest % kPlaces);
  const std::uint64_t scale = 256 + (before & 0xFF);
  const std::uint64_t offset = (before >> 8) & ((std::uint64_t{1} << 30) - 1);
  const std::uint64_t noise = place.digest % scale;
  return static_cast<Token>(offset + static_cast<std::uint64_t>(token) % kTokensMax * scale + noise);
}

std::uint64_t StandIns::of_name(std::uint64_t lasting) const {
  if (lasting <= 1) return lasting;
  return digest(lasting, ~std::uint64_t{0}) | 2;
}

}  // namespace chasqui
