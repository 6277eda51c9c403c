#include "record/stand_ins.h"

namespace chasqui {
namespace {

// No vocabulary is as large.
constexpr std::uint64_t kTokensMax = std::uint64_t{1} << 20;

}  // namespace

std::uint64_t StandIns::digest(std::uint64_t before, std::uint64_t next) const {
  SipHash hash(secret_);
  hash.add(before);
  hash.add(next);
  return hash.result();
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
