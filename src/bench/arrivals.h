// When the requests of an open loop are to be sent: a Poisson process, in seconds from the start of its group. It
// knows nothing of answers, so a slow server cannot slow it down. Owned by its group; single-threaded.
#pragma once

#include <cstdint>
#include <string_view>

#include "bench/random_source.h"

namespace chasqui::bench {

class Arrivals {
 public:
  // REQUIRES: rate > 0
  Arrivals(double rate, std::uint64_t seed, std::string_view name)
      : rate_(rate), random_(seed, std::string(name) + ".arrivals") {}

  double next() { return at_ += random_.interval(rate_); }

 private:
  double rate_;
  double at_ = 0;
  RandomSource random_;
};

}  // namespace chasqui::bench
