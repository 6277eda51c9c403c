// Watches that none starves (the invariant progress): what decodes gets a row every few steps, and what waits for a
// slot is passed by a bounded number of younger requests of the same tenant and class. Lists in the order of patience,
// so that each step looks at their heads only. Owned by the simulation; one thread.
#pragma once

#include <cstddef>
#include <vector>

#include "sched/overtaking.h"
#include "sim/faults.h"
#include "sim/sim_request.h"

namespace chasqui {

// Requests in the order in which they came; each is in one fifo at most.
struct Fifo {
  SimRequest* first = nullptr;
  SimRequest* last = nullptr;

  void push(SimRequest& life);
  static void leave(SimRequest& life);
};

struct PatienceConfig {
  // A decoding sequence may be left out for so many steps, or for so long.
  std::uint64_t decode_steps = 256;
  Duration decode_wait = seconds(300);
  std::int32_t passed = Overtaking::kPassedMost;  // younger requests of its kind that get a slot before one
  Duration standstill = seconds(1);               // how long nothing may be computed while there is work
};

class ProgressWatch {
 public:
  ProgressWatch(const PatienceConfig& config, std::size_t tenants, Faults& faults);

  // The scheduler has taken it.
  void waits(SimRequest& life);
  // It has a slot for the first time.
  void starts(SimRequest& life);
  // A row of it was computed.
  void got_row(SimRequest& life, TimePoint now);
  void ended(SimRequest& life);
  // After each step that was computed, aborted ones left out.
  void step_done(std::uint64_t step, TimePoint now);
  // Nothing was computed although there is work; `now` moves on.
  void stands_still(TimePoint now);
  void moves_on() { standing_ = false; }

  // Tenants of whom a request of this class waits.
  std::size_t competitors(std::size_t service_class) const { return competitors_[service_class]; }
  bool waiting(std::size_t tenant, std::size_t service_class) const {
    return waiting_[tenant * kServiceClasses + service_class].first != nullptr;
  }

 private:
  Fifo& fifo(const SimRequest& life);
  void leave(SimRequest& life);

  const PatienceConfig config_;
  Faults& faults_;
  std::vector<Fifo> waiting_;  // for each tenant and class
  std::size_t competitors_[kServiceClasses] = {};
  Fifo decoding_;  // the one without a row for the longest time stands first
  TimePoint standing_since_{};
  bool standing_ = false;
};

}  // namespace chasqui
