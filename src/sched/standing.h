// What decides over a sequence's place: who gets a slot and rows before it, and whether it gives its slot up. A plain
// value, taken from a Sequence by Urgency::of(), or made up for a request that might come (Projection).
#pragma once

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

struct Standing {
  RequestId id;
  ServiceClass service_class = ServiceClass::standard;
  std::uint32_t tenant = 0;
  double service = 0;        // that the tenant has received
  double group_service = 0;  // … and the group of its requests, see GroupCounters
  bool starved = false;      // it was passed so often that the next slot is its
  TimePoint arrival{};
  TimePoint waiting_since{};      // Sequence::waiting_since()
  Duration first_token_within{};  // … and how long after that its first token is due
  double score = 0;               // see Urgency; of equals, the smaller one goes first
  TokenCount left = 0;            // rows to compute before its next token
  TimePoint slot_since = kNever;  // since when it has its slot, where it has one
  bool holds_on = false;          // Sequence::holds_on(), to the end of its slice
};

}  // namespace chasqui
