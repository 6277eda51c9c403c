// Numbers that stand in a recording for tokens, so that it says nothing of what clients ask and are told. Where two
// texts begin alike their stand-ins do, and where they part the stand-ins part, in the same order: this is all that
// decides what is found in a prefix cache. Elsewhere the same token has another number each time: a digest of all
// tokens before it, keyed with a secret of the recording that is written nowhere (SipHash). What can be guessed is how
// long a text is, which texts begin alike, and, of many that part at the same place, roughly which have similar tokens
// there. Immutable; any thread.
#pragma once

#include <cstdint>

#include "base/sip_hash.h"
#include "core/types.h"

namespace chasqui {

class StandIns {
 public:
  using Secret = SipKey;
  // A place in a text: all that was before it.
  struct Place {
    std::uint64_t digest = 0;
  };

  static Secret new_secret() { return SipKey::random(); }

  explicit StandIns(Secret secret) : secret_(secret) {}

  Place begin() const { return {digest(0, 0)}; }
  // Of the next token, behind which `place` is then. kNoToken stays what it is, and places of pictures stay below it.
  Token next(Place& place, Token token) const;
  // Of a number that is the same after a restart. 0 and 1 mean something, and stay.
  std::uint64_t of_name(std::uint64_t lasting) const;

 private:
  std::uint64_t digest(std::uint64_t before, std::uint64_t next) const;

  Secret secret_;
};

}  // namespace chasqui
