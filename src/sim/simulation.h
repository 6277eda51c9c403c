// Runs real Schedulers on virtual time, each with a model that costs time and computes nothing, against a workload, and
// checks every promise at every step. With several workers the real Placement says which of them gets a request. The
// same configuration and workload always give the same run. One thread.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "engine/placement.h"
#include "sim/admission_gate.h"
#include "sim/conversations.h"
#include "sim/distribution.h"
#include "sim/event_queue.h"
#include "sim/sim_request.h"
#include "sim/sim_worker.h"
#include "sim/statistics.h"
#include "sim/workload.h"

namespace chasqui {

// What goes wrong below the scheduler, as a share of all steps.
struct DisturbanceConfig {
  double failed = 0;
  double no_room = 0;
  double aborted = 0;
  double unrestored = 0;  // … of those that bring a snapshot back, in vain
  double undrafted = 0;   // … of those in which a draft model was to draft
};

struct ClientConfig {
  std::int32_t clients = 0;  // so many, each with one request at a time; 0: requests come at their own times
  Distribution think_ms{0};  // … from the end of an answer to the next request
  Distribution tool_ms{0};   // … of an answer that calls a tool
  std::int32_t turns = 0;    // the requests of each are a conversation of so many turns, and then another one; 0: none
  std::int32_t tries_max = 4;
  std::int32_t unread_max = 1000;  // tokens that wait for a slow client before its request is cancelled
  bool sessions = false;           // all requests of a client are of one session, which stays with its worker
};

struct SimulationConfig {
  std::uint64_t seed = 1;
  std::size_t workers = 1;
  SchedulerConfig scheduler;        // of each of them
  TokenCount checkpoint_every = 0;  // as RequestLimits
  double acceptance = 0.7;          // share of the tokens that a draft model drafts
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
  void arrive(std::uint32_t client);
  void come(PlannedRequest plan, std::uint32_t client);
  void try_door(SimRequest& life);
  RequestDraft draft_of(const SimRequest& life) const;
  void submit(SimRequest& life);
  void place(SimRequest& life);
  void leave(SimRequest& life);
  void leave_at(SimRequest& life);
  void end(SimRequest& life, Outcome outcome, TimePoint now);

  // Steps.
  void act(SimWorker& worker);
  void plan(SimWorker& worker);
  void begin(SimWorker& worker);
  void complete(SimWorker& worker);
  void settle(SimWorker& worker);
  void publish();
  Duration copying(SimWorker& worker) const;
  Duration drafting(SimWorker& worker);
  void note_starts(SimWorker& worker);
  void rows_computed(SimWorker& worker);
  void wait_for_work(SimWorker& worker);
  DecodeStatus draw_status();
  void order_disk(SimWorker& worker);
  void take_events(SimWorker& worker);
  void note(const Event& event, SimWorker& worker);
  void note_text(SimRequest& life, const Event& event, TimePoint now);
  void check_state(const SimWorker& worker);
  void check_reuse(const SimWorker& worker);
  void check_passes(const SimWorker& worker);
  void expect_nothing_left();
  void sum_up();
  std::uint32_t number_of(const SimWorker& worker) const;

  const SimulationConfig config_;
  Workload& workload_;
  TimePoint at_ = kStart;  // of the clients: when the newest event happened
  Faults faults_;
  AdmissionGate gate_;  // before the lives, which hold its permits
  SimRequestTable lives_;
  Conversations conversations_;
  EventQueue queue_;
  std::deque<SimWorker> workers_;
  std::optional<Placement> placement_;  // where there are several
  std::vector<WorkerState> states_;     // … what they last said
  std::vector<std::int32_t> pinned_;    // … by client: the worker of its session; -1: none yet
  Statistics statistics_;
  Random client_dice_;
  Random fault_dice_;
  Random draft_dice_;

  std::vector<Event> events_;
  std::vector<const SimRequest*> started_;  // scratch of note_starts()
  std::optional<PlannedRequest> planned_;   // the next request that comes by itself
  std::size_t accepted_ = 0;                // … and not ended
  std::uint64_t serials_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace chasqui
