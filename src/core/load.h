// How busy a worker is: what the scheduler knows that admission and placement need. A plain value, taken between two
// steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

struct Load {
  std::int32_t slots = 0;
  std::int32_t running = 0;                             // sequences that hold a slot
  std::array<std::int32_t, kServiceClasses> waiting{};  // … that wait for one, by class
  std::int32_t newer = 0;                               // requests that came after the forecast was made
  TimePoint running_since{};                            // of those that run, on average; means nothing without any
  std::int64_t waiting_tokens = 0;                      // prompt tokens of all that wait
  std::int64_t tokens_to_prefill = 0;                   // the same, and what is left of running prompts
  Duration slot_time{};  // how long a sequence holds its slot, a moving average; 0: not known yet
  Duration row_time{};   // for a prompt token, beside everything else; 0: not known yet

  // The forecast (sched/projection.h): when one more request would get its first token, what its own prompt takes not
  // counted, by class …
  static constexpr std::int64_t kShort = 32;
  static constexpr std::int64_t kLong = 1024;
  struct Wait {
    std::array<Duration, kServiceClasses> of_short{};
    std::array<Duration, kServiceClasses> of_long{};
  };
  Wait wait{};
  // … how many of the class would get slots at once …
  std::array<std::int32_t, kServiceClasses> room{};
  // … and waits of their own for the tenants with most requests here, where slots are short.
  std::int32_t tenants = 0;
  struct OfTenant {
    std::int64_t tenant = 0;
    Wait wait{};
  };
  static constexpr std::size_t kTenants = 4;
  std::array<OfTenant, kTenants> of_tenants{};

  // … of so many tokens, when so many others, of `unread` tokens together, come before it.
  Duration wait_of(std::uint32_t tenant, ServiceClass service_class, std::int64_t tokens, double others,
                   std::int64_t unread) const {
    const auto c = static_cast<std::size_t>(service_class);
    const Wait* its = &wait;
    for (std::int32_t i = 0; i < tenants; ++i) {
      const OfTenant& listed = of_tenants[static_cast<std::size_t>(i)];
      if (listed.tenant == tenant) its = &listed.wait;
    }
    const double part = static_cast<double>(std::clamp(tokens, kShort, kLong) - kShort) / (kLong - kShort);
    const double first = to_seconds(its->of_short[c]);
    double total = first + part * (to_seconds(its->of_long[c]) - first);
    if (others < room[c]) {
      total += to_seconds(row_time) * static_cast<double>(unread);
    } else {
      total += to_seconds(slot_time) / std::max(slots, 1) * (others + (room[c] > 0 ? 1 : 0) - room[c]);
    }
    return from_seconds(total);
  }
};

}  // namespace chasqui
