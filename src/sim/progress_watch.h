// Watches that none starves (the invariant progress): what decodes gets a row every few steps, and what waits for a
// slot is passed by a bounded number of younger requests of the same tenant and class; and where requests of a tenant
// and class wait, one of them starts after a bounded number of starts of younger others; and that what is computed
// leads to a token. Lists in the order of patience, so that each step looks at their heads only. Owned by the
// simulation; one thread.
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
  std::uint64_t silent_rows = 0;                  // rows in a row that lead to no token; 0: any number
};

class ProgressWatch {
 public:
  ProgressWatch(const PatienceConfig& config, std::size_t tenants, Faults& faults);

  // The scheduler has taken it.
  void waits(SimRequest& life);
  // It has a slot for the first time.
  void starts(const SimRequest& life);
  // It has one again.
  void goes_on(SimRequest& life, std::uint64_t step, TimePoint now);
  // A row of it was computed.
  void got_row(SimRequest& life, TimePoint now);
  void ended(SimRequest& life);
  // So many rows in a step, which gave a token, or none.
  void computed(std::size_t rows, bool token);
  // After each step that was computed, aborted ones left out.
  void step_done(std::uint64_t step, TimePoint now);
  // Nothing was computed although there is work; `now` moves on.
  void stands_still(TimePoint now);
  void moves_on() { standing_ = false; }

  // By how many younger ones of its kind a request was passed at most.
  std::int32_t most_passed() const { return most_passed_; }

  // Tenants of whom a request of this class waits.
  std::size_t competitors(std::size_t service_class) const { return competitors_[service_class]; }
  bool waiting(std::size_t tenant, std::size_t service_class) const {
    return waiting_[tenant * kServiceClasses + service_class].first != nullptr;
  }

 private:
  std::size_t line_of(const SimRequest& life) const {
    return life.plan.tenant * kServiceClasses + static_cast<std::size_t>(life.plan.service_class);
  }
  void passes_others(const SimRequest& life);
  void leave(SimRequest& life);

  const PatienceConfig config_;
  Faults& faults_;
  std::vector<Fifo> waiting_;              // for each tenant and class
  std::vector<std::int32_t> passed_over_;  // … starts of younger others since one of it started
  std::size_t competitors_[kServiceClasses] = {};
  Fifo decoding_;  // the one without a row for the longest time stands first
  TimePoint standing_since_{};
  bool standing_ = false;
  std::uint64_t silent_rows_ = 0;
  std::int32_t most_passed_ = 0;
};

}  // namespace chasqui
