// Runs the real Scheduler on virtual time, with a model that costs time and computes nothing, against a workload, and
// checks every promise at every step. The same configuration and workload always give the same run. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sched/scheduler.h"
#include "sim/admission_gate.h"
#include "sim/checked_model.h"
#include "sim/distribution.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/progress_watch.h"
#include "sim/sim_request.h"
#include "sim/statistics.h"
#include "sim/step_cost.h"
#include "sim/workload.h"

namespace chasqui {

// What goes wrong below the scheduler, as a share of all steps.
struct DisturbanceConfig {
  double failed = 0;
  double no_room = 0;
  double aborted = 0;
  double unrestored = 0;  // … of those that bring a snapshot back, in vain
};

struct ClientConfig {
  std::int32_t clients = 0;  // so many, each with one request at a time; 0: requests come at their own times
  Distribution think_ms{0};  // … from the end of an answer to the next request
  std::int32_t tries_max = 4;
  std::int32_t unread_max = 1000;  // tokens that wait for a slow client before its request is cancelled
};

struct SimulationConfig {
  std::uint64_t seed = 1;
  SchedulerConfig scheduler;
  CostConfig cost;
  AdmissionGateConfig gate;
  DisturbanceConfig disturbances;
  ClientConfig clients;
  PatienceConfig patience;
  Objective objective;
};

class Simulation {
 public:
  // Virtual time does not begin at zero, since a real clock never stands there either.
  static constexpr TimePoint kStart = TimePoint{} + std::chrono::hours(1);

  Simulation(const SimulationConfig& config, Workload& workload);

  // To the end of the workload, or to the first broken promise: then false.
  bool run();

  const Statistics& statistics() const { return statistics_; }
  const Faults& faults() const { return faults_; }

 private:
  // Clients.
  void plan_next();
  void handle(const Due& due);
  TimePoint meanwhile(TimePoint end);
  void arrive(std::uint32_t client);
  void try_door(SimRequest& life);
  void submit(SimRequest& life);
  void leave(SimRequest& life);
  void leave_at(SimRequest& life);
  void end(SimRequest& life, Outcome outcome);

  // Steps.
  void step();
  void compute();
  Duration computing_takes(DecodeStatus& status, TokenCount held);
  Duration copying_took();
  void note_starts();
  void rows_computed();
  void wait_for_work();
  DecodeStatus draw_status();
  void take_events();
  void note(const Event& event);
  void note_text(SimRequest& life, const Event& event);
  void check_state();
  void check_reuse();
  void expect_nothing_left();
  template <class Work>
  void each_part(Work work);

  const SimulationConfig config_;
  Workload& workload_;
  TimePoint now_ = kStart;  // of the worker: between two steps, or the beginning of the one that is computed
  TimePoint at_ = kStart;   // of the clients: when the newest event happened
  Faults faults_;
  AdmissionGate gate_;  // before the lives, which hold its permits
  SimRequestTable lives_;
  EventQueue queue_;
  Scheduler scheduler_;
  CheckedModel model_;
  CostModel cost_;
  ProgressWatch watch_;
  Statistics statistics_;
  Random client_dice_;
  Random fault_dice_;

  Batch batch_;
  BatchResult result_;
  Duration saving_{};  // what the copies of the step take
  Duration restoring_{};
  std::vector<Event> events_;
  std::vector<RequestId> leaving_;         // to be cancelled before the next step
  std::vector<RequestId> batch_ids_;       // of the parts of the step
  std::optional<PlannedRequest> planned_;  // the next request that comes by itself
  std::size_t accepted_ = 0;               // … and not ended
  std::uint64_t serials_ = 0;
  std::uint64_t step_ = 0;
  bool computing_ = false;
  int newest_class_ = kServiceClasses;  // of the request that the newest event brought; else this
  bool exhausted_ = false;              // the workload has no more
};

}  // namespace chasqui
