// What the counters of an EnergySource have counted, and what of it was taken. They are read at most every kEvery; in
// between the power is taken to be what it was, and the next reading sets it right, so that no energy is taken twice
// and none is lost: short steps have their part as long ones do.
//
// add(): one thread at a time. Everything else: any thread, without locks.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace chasqui {

class EnergyTally {
 public:
  static constexpr Duration kEvery = milliseconds(100);

  explicit EnergyTally(TimePoint now) : read_at_(now.time_since_epoch().count()) {}

  // The counters have gained so much since the last reading. What no request used is not taken.
  void add(std::int64_t microjoules, TimePoint now, bool of_requests);
  // Until the first reading with energy of requests there is no power to go on with.
  bool knows_power() const { return power_.load() > 0; }
  Duration since_reading(TimePoint now) const { return Duration(now.time_since_epoch().count() - read_at_.load()); }

  // Microjoules since any thread last took them.
  std::int64_t take(TimePoint now);

 private:
  void lift_taken(std::int64_t to);

  // read_at_ is written before measured_ and read after it, so that a thread in between takes too little, and never too
  // much.
  std::atomic<TimePoint::rep> read_at_;
  std::atomic<std::int64_t> measured_{0};  // microjoules until then
  std::atomic<double> power_{0};           // microjoules a second, while requests were computed
  std::atomic<std::int64_t> taken_{0};
};

}  // namespace chasqui
