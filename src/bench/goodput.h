// What counts as good service: limits in milliseconds that a request must keep all of. A plain value.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"

namespace chasqui::bench {

// What a finished request took, in milliseconds.
struct Latencies {
  double ttft = 0;
  double worst_gap = 0;  // 0 for answers of one token
  double tpot = 0;
  double e2e = 0;
};

struct Goodput {
  std::optional<double> ttft, itl, tpot, e2e;

  // itl is held by the longest gap between two tokens, so that one long pause is not averaged away.
  bool met_by(const Latencies& took) const;
  bool any() const { return ttft || itl || tpot || e2e; }
};

// "ttft:1000,itl:200"
Result<Goodput> parse_goodput(std::string_view text);

}  // namespace chasqui::bench
