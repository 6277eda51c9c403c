// When a client that was refused may come again, by what the server said. Pure functions; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace chasqui::bench {

// 429 and 503: the server is well and wants to be asked later.
constexpr bool is_refusal(int status) { return status == 429 || status == 503; }

// A server that asks for more than this is not waited for.
constexpr Duration kRetryMost = seconds(120);
// A request that was refused so often gives up.
constexpr int kRetriesMost = 100;

// retry-after-ms is finer and goes before Retry-After. Nothing when neither can be used: missing, no number (a date
// too), negative, or longer than kRetryMost. "0" is usable and means at once.
std::optional<Duration> retry_delay(std::string_view retry_after, std::string_view retry_after_ms);

}  // namespace chasqui::bench
