// Tells a request that comes again from one that comes for the first time: a keyed hash of whose it is and what it
// says. Made once at start; loop thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/retry_reservations.h"

namespace chasqui {

class RequestHasher {
 public:
  // With a key of its own, so that a client cannot construct two bodies that look alike.
  RequestHasher();

  // Of a long body only both ends and the length are read, so that this stays far below a millisecond.
  RequestHash of(std::uint32_t tenant, std::string_view path, std::string_view body) const;

 private:
  std::string secret_;
};

}  // namespace chasqui
