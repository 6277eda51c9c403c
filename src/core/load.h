// How busy a worker is: what the scheduler knows that admission and placement need. A plain value, taken between two
// steps.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

struct Load {
  std::int32_t slots = 0;
  std::int32_t running = 0;                             // sequences that hold a slot
  TimePoint running_since{};                            // … from when on, on average; means nothing without any
  std::array<std::int32_t, kServiceClasses> waiting{};  // … that wait for one, by class
  std::int64_t waiting_tokens = 0;                      // prompt tokens of all that wait
  std::int64_t unread_tokens = 0;                       // the same, and what is left of the prompts of those that run
  bool slot_time_known = false;  // a sequence has ended; else slot_time is the age of those that run
  Duration slot_time{};          // how long a sequence holds its slot, a moving average; 0: not known yet
  Duration row_time{};           // for a prompt token, beside everything else; 0: not known yet
  std::array<Duration, kServiceClasses>
      wait{};  // predicted time to the first token of one more short request, by class
};

}  // namespace chasqui
