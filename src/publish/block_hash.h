// Names blocks: a hash of 64 bits (SipHash-2-4) of a block's tokens, of the block before it and of the adapters, keyed
// with a secret, so that no client can find two prompts whose blocks have one hash. By chance two can: who keeps blocks
// by their hash compares them. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/sip_hash.h"
#include "core/types.h"

namespace chasqui::publish {

using BlockHash = std::uint64_t;  // never 0

class BlockHasher {
 public:
  using Secret = SipKey;
  static Secret new_secret() { return SipKey::random(); }

  // `mask`: bits that count, fewer in tests, where hashes are to be equal.
  explicit BlockHasher(Secret secret, std::uint64_t mask = ~std::uint64_t{0}) : secret_(secret), mask_(mask) {}

  BlockHash operator()(BlockHash parent, std::uint64_t adapters, std::span<const Token> tokens) const;

 private:
  Secret secret_;
  std::uint64_t mask_;
};

}  // namespace chasqui::publish
