#include "sim/simulation.h"

#include <algorithm>

#include "engine/load_sum.h"
#include "sim/event_rules.h"

namespace chasqui {
namespace {

// First come, first served passes no one by rule; a request that waits for the prefix of another may be passed by more.
PatienceConfig patience_of(const SimulationConfig& config) {
  PatienceConfig patience = config.patience;
  if (config.scheduler.reuse.cache.bytes > 0) patience.passed *= 2;
  // Before the first token all slots may read the longest prompt, and some of it again.
  constexpr std::uint64_t kReadAgain = 8;
  patience.silent_rows = kReadAgain * static_cast<std::uint64_t>(config.scheduler.kv.cells);
  return patience;
}

// Of one of several: they divide the cache and the disk among them.
SchedulerConfig scheduler_of(const SimulationConfig& config, std::size_t number) {
  SchedulerConfig scheduler = config.scheduler;
  ReuseConfig& reuse = scheduler.reuse;
  reuse.first_slot = static_cast<std::int32_t>(number) * scheduler.kv.slots;
  reuse.cache.bytes /= config.workers;
  if (reuse.disk) {
    reuse.disk->bytes /= config.workers;
    reuse.disk->queue_bytes /= config.workers;
    reuse.disk->worker = static_cast<std::uint32_t>(number);
    reuse.disk->workers = static_cast<std::uint32_t>(config.workers);
  }
  return scheduler;
}

PlacementConfig placement_of(const SimulationConfig& config) {
  PlacementConfig placement;
  placement.workers = config.workers;
  placement.slots = config.scheduler.kv.slots;
  placement.shared_by_tenants = config.scheduler.reuse.shared_by_tenants;
  return placement;
}

}  // namespace

Simulation::Simulation(const SimulationConfig& config, Workload& workload)
    : config_(config),
      workload_(workload),
      gate_(config.gate, config.scheduler.kv.slots * static_cast<std::int32_t>(config.workers)),
      conversations_(config.scheduler.kv.cells_per_slot, config.clients.turns),
      states_(config.workers),
      pinned_(static_cast<std::size_t>(config.clients.clients), -1),
      statistics_(workload, config.objective),
      client_dice_(config.seed, 3),
      fault_dice_(config.seed, 2),
      draft_dice_(config.seed, 5) {
  CHECK(config_.workers > 0);
  for (std::size_t i = 0; i < config_.workers; ++i) {
    SimWorker& worker = workers_.emplace_back(scheduler_of(config_, i), config_.cost, patience_of(config_),
                                              workload.tenants().size(), config_.seed + i, lives_, faults_);
    worker.now = worker.looked = kStart;
  }
  if (config_.workers > 1) placement_.emplace(placement_of(config_));
}

bool Simulation::run() {
  if (config_.clients.clients > 0) {
    for (std::int32_t i = 0; i < config_.clients.clients; ++i) {
      queue_.add(kStart, Due::Kind::arrival, 0, static_cast<std::uint32_t>(i));
    }
  } else {
    plan_next();
  }
  while (!faults_.any()) {
    const auto earlier = [](const SimWorker& a, const SimWorker& b) { return a.next() < b.next(); };
    SimWorker& worker = *std::min_element(workers_.begin(), workers_.end(), earlier);
    const TimePoint next = worker.next();
    // What comes just when a step ends has its turn after it, and before the next is planned.
    const bool plans = worker.doing == SimWorker::Doing::plans;
    if (!queue_.empty() && (queue_.next() < next || (plans && queue_.next() == next))) {
      handle(queue_.take());
    } else if (next == kNever) {
      break;
    } else {
      act(worker);
    }
  }
  if (!faults_.any()) expect_nothing_left();
  sum_up();
  return !faults_.any();
}

void Simulation::act(SimWorker& worker) {
  if (worker.doing == SimWorker::Doing::plans) return plan(worker);
  complete(worker);
  settle(worker);
}

void Simulation::plan(SimWorker& worker) {
  faults_.step(++step_, worker.now);
  ++worker.steps;
  worker.looked = worker.now;
  worker.waited = false;
  for (DiskOutcome& outcome : worker.read) worker.scheduler.disk_done(std::move(outcome), worker.now);
  worker.read.clear();
  worker.scheduler.next_batch(worker.now, worker.batch);
  note_starts(worker);
  take_events(worker);
  order_disk(worker);
  if (!worker.batch.empty()) return begin(worker);
  wait_for_work(worker);
  settle(worker);
}

// After a step, or when there was none.
void Simulation::settle(SimWorker& worker) {
  for (const RequestId id : worker.leaving) {
    if (SimRequest* life = lives_.find(id)) leave(*life);
  }
  worker.leaving.clear();
  states_[number_of(worker)].load = worker.scheduler.load();
  publish();
  check_state(worker);
}

void Simulation::publish() {
  if (states_.size() == 1) return gate_.publish(states_.front().load);
  LoadSum sum;
  for (const WorkerState& state : states_) sum.add(state.load);
  gate_.publish(sum.all());
}

std::uint32_t Simulation::number_of(const SimWorker& worker) const {
  std::uint32_t number = 0;
  while (&workers_[number] != &worker) ++number;
  return number;
}

// The step is decided but for what cuts it.
void Simulation::begin(SimWorker& worker) {
  const Batch& batch = worker.batch;
  worker.watch.moves_on();
  worker.status = draw_status();
  const bool unrestored = !batch.restores.empty() && fault_dice_.chance(config_.disturbances.unrestored);
  if (unrestored) worker.model.fail_next_restore();
  worker.batch_ids.clear();
  for (const BatchPart& part : batch.parts) worker.batch_ids.push_back(part.request->id);
  worker.before.clear();
  worker.begins = worker.now + copying(worker) + drafting(worker);
  worker.computes_rows = !batch.rows.empty() && !unrestored;
  Duration takes{};
  if (worker.computes_rows) {
    takes = worker.cost.cost(batch, worker.model.held(), worker.begins);
    // It is given up at some time before its end.
    if (worker.status == DecodeStatus::aborted) {
      takes = Duration(static_cast<std::int64_t>(static_cast<double>(takes.count()) * fault_dice_.unit()));
    }
    check_passes(worker);
  }
  worker.ends = worker.begins + takes;
  worker.doing = SimWorker::Doing::computes;
}

void Simulation::complete(SimWorker& worker) {
  const Batch& batch = worker.batch;
  BatchResult& result = worker.result;
  const BatchResult& took = worker.before;
  worker.now = worker.ends;
  worker.doing = SimWorker::Doing::plans;
  worker.model.run(batch, worker.status, worker.steps, result);
  if (faults_.any()) return;
  result.saving = took.saving;
  result.restoring = took.restoring;
  result.drafted = took.drafted;
  result.drafting = took.drafting;
  result.draft_reading = took.draft_reading;
  result.finished = worker.now;
  const bool ok = result.status == DecodeStatus::ok;
  if (worker.computes_rows) {
    result.compute = worker.ends - worker.begins;
    if (ok && batch.learn) {
      result.learning = worker.cost.learning(batch);
      result.finished = worker.now = worker.now + result.learning;
    }
    statistics_.step(batch, result.status, result.compute, worker.cost.passes());
  }
  if (ok) rows_computed(worker);
  const bool failed = result.status == DecodeStatus::failed || result.status == DecodeStatus::no_room;
  for (const RequestId id : worker.batch_ids) {
    SimRequest* const life = failed ? lives_.find(id) : nullptr;
    if (life != nullptr) life->failed = true;
  }
  worker.scheduler.commit(batch, result);
  end_leases(worker.batch, worker.result);
  take_events(worker);
  for (const RequestId id : worker.batch_ids) {
    faults_.expect(!failed || lives_.find(id) == nullptr, "one-terminal: a request survived its failed batch");
  }
  if (result.status != DecodeStatus::aborted) worker.watch.step_done(worker.steps, worker.now);
}

// All copies of the step together, which is also how the scheduler learns what they cost.
Duration Simulation::copying(SimWorker& worker) const {
  std::int64_t saved = 0;
  std::int64_t restored = 0;
  for (const SlotSave& save : worker.batch.saves) saved += save.tokens - save.from;
  for (const SlotRestore& restore : worker.batch.restores) {
    const bool whole = restore.snapshot && restore.snapshot->block_tokens() == 0;
    restored += whole ? restore.snapshot->tokens() : restore.end() - restore.from;
  }
  worker.before.saving = worker.cost.copy(saved);
  worker.before.restoring = worker.cost.copy(restored);
  return worker.before.saving + worker.before.restoring;
}

// What a draft model, or the model's heads, do before the rows.
Duration Simulation::drafting(SimWorker& worker) {
  if (worker.batch.drafting.empty()) return Duration::zero();
  BatchResult& result = worker.before;
  result.drafted = !fault_dice_.chance(config_.disturbances.undrafted);
  result.draft_reading = worker.cost.draft_reading(worker.batch);
  result.drafting = worker.cost.drafting(worker.batch);
  if (result.drafted) worker.model.draft(worker.batch, config_.acceptance, draft_dice_);
  return result.draft_reading + result.drafting;
}

// Which have a slot since the last step: for the first time, or again. Those that start together pass those that still
// wait, and not each other.
void Simulation::note_starts(SimWorker& worker) {
  started_.clear();
  for (const auto& sequence : worker.scheduler.running_sequences()) {
    SimRequest* const life = lives_.find(sequence->id());
    if (life == nullptr || life->slot_since == sequence->slot_since()) continue;
    life->slot_since = sequence->slot_since();
    if (life->has_started) {
      worker.watch.goes_on(*life, worker.steps, worker.now);
    } else {
      life->has_started = true;
      started_.push_back(life);
    }
  }
  for (const SimRequest* life : started_) worker.watch.starts(*life);
}

void Simulation::rows_computed(SimWorker& worker) {
  if (worker.batch.rows.empty()) return;
  worker.watch.computed(worker.batch.rows.size(), !worker.result.samples.empty());
  statistics_.contention.step(worker.batch, worker.result.compute, worker.watch, lives_);
  for (const BatchPart& part : worker.batch.parts) {
    lives_.find(part.request->id)->rows += static_cast<std::uint64_t>(part.rows);
  }
  for (const RequestId id : worker.batch_ids) {
    SimRequest& life = *lives_.find(id);
    worker.watch.got_row(life, worker.now);
    const bool leaves = life.plan.leaving == Leaving::after_rows;
    if (leaves && worker.model.length(life) >= life.plan.leaves_after) leave_at(life);
  }
}

// Nothing to compute: on to the next thing that happens outside; a little later when there is work all the same.
void Simulation::wait_for_work(SimWorker& worker) {
  if (worker.scheduler.idle() || worker.scheduler.waits_for_disk()) {
    worker.watch.moves_on();
    worker.doing = SimWorker::Doing::rests;
    const bool reads = worker.scheduler.idle() || worker.disk->under_way() > 0;
    faults_.expect(reads, "progress: a request waits for a disk that does nothing");
    return;
  }
  worker.watch.stands_still(worker.now);
  worker.now += milliseconds(1);
  worker.waited = true;
}

DecodeStatus Simulation::draw_status() {
  const DisturbanceConfig& chance = config_.disturbances;
  if (fault_dice_.chance(chance.failed)) return DecodeStatus::failed;
  if (fault_dice_.chance(chance.no_room)) return DecodeStatus::no_room;
  if (fault_dice_.chance(chance.aborted)) return DecodeStatus::aborted;
  return DecodeStatus::ok;
}

void Simulation::order_disk(SimWorker& worker) {
  if (!worker.disk) return;
  if (worker.scheduler.idle()) worker.scheduler.rest_disk();
  worker.scheduler.take_disk_orders(worker.orders);
  for (const TimePoint end : worker.disk->order(worker.orders, worker.now)) {
    queue_.add(end, Due::Kind::disk, 0, number_of(worker));
  }
}

void Simulation::take_events(SimWorker& worker) {
  events_.clear();
  worker.scheduler.take_events(events_);
  for (const Event& event : events_) note(event, worker);
}

void Simulation::note(const Event& event, SimWorker& worker) {
  SimRequest* life = lives_.find(event.request);
  if (life == nullptr) return faults_.expect(false, "one-terminal: an event after the end, or of no request");
  const TimePoint now = worker.now;
  statistics_.hash(event, life->serial, now);
  check_event(event, *life, worker.steps, now, faults_);
  if (event.tokens > 0) note_text(*life, event, now);
  if (event.kind != Event::Kind::finished) return;
  life->cached = event.usage.cached;
  switch (event.reason) {
    case FinishReason::stop:
    case FinishReason::length: return end(*life, Outcome::ok, now);
    case FinishReason::cancelled: return end(*life, Outcome::cancelled, now);
    case FinishReason::deadline: return end(*life, Outcome::deadline, now);
    case FinishReason::error: return end(*life, Outcome::failed, now);
  }
}

void Simulation::note_text(SimRequest& life, const Event& event, TimePoint now) {
  statistics_.told(life, event, now);
  const PlannedRequest& plan = life.plan;
  if (plan.leaving == Leaving::after_tokens && life.said >= plan.leaves_after) leave_at(life);
  if (plan.reads_per_s > 0) {
    const double read = to_seconds(now - life.first_token) * plan.reads_per_s;
    if (life.said - read > config_.clients.unread_max) leave_at(life);
  }
}

}  // namespace chasqui
