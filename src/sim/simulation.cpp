#include "sim/simulation.h"

#include <algorithm>

#include "sim/event_rules.h"

namespace chasqui {
namespace {

// First come, first served passes no one by rule; a request that waits for the prefix of another may be passed by more.
PatienceConfig patience_of(const SimulationConfig& config) {
  PatienceConfig patience = config.patience;
  if (config.scheduler.reuse.cache.bytes > 0) patience.passed *= 2;
  return patience;
}

}  // namespace

Simulation::Simulation(const SimulationConfig& config, Workload& workload)
    : config_(config),
      workload_(workload),
      gate_(config.gate, config.scheduler.kv.slots),
      scheduler_(config.scheduler),
      model_(config.scheduler.kv, config.scheduler.rows_max, lives_, faults_),
      cost_(config.cost, config.seed),
      watch_(patience_of(config), workload.tenants().size(), faults_),
      statistics_(workload, config.objective),
      client_dice_(config.seed, 3),
      fault_dice_(config.seed, 2) {}

bool Simulation::run() {
  if (config_.clients.clients > 0) {
    for (std::int32_t i = 0; i < config_.clients.clients; ++i) {
      queue_.add(now_, Due::Kind::arrival, 0, static_cast<std::uint32_t>(i));
    }
  } else {
    plan_next();
  }
  while (!faults_.any()) {
    meanwhile(now_ + Duration(1));
    if (queue_.empty() && scheduler_.idle()) break;
    step();
  }
  if (!faults_.any()) expect_nothing_left();
  statistics_.virtual_time = now_ - kStart;
  statistics_.moves = model_.moves();
  statistics_.recomputed_rows = model_.recomputed_rows();
  statistics_.prompt_rows = model_.prompt_rows();
  statistics_.cache = scheduler_.reuse().cache_stats();
  statistics_.prefix_waits = scheduler_.reuse().waits_begun();
  return !faults_.any();
}

void Simulation::step() {
  faults_.step(++step_, now_);
  scheduler_.next_batch(now_, batch_);
  note_starts();
  take_events();
  if (batch_.empty()) {
    wait_for_work();
  } else {
    compute();
  }
  for (const RequestId id : leaving_) {
    if (SimRequest* life = lives_.find(id)) leave(*life);
  }
  leaving_.clear();
  gate_.publish(scheduler_.load());
  check_state();
}

template <class Work>
void Simulation::each_part(Work work) {
  for (const BatchPart& part : batch_.parts) {
    if (SimRequest* life = lives_.find(part.request->id)) work(*life);
  }
}

void Simulation::compute() {
  watch_.moves_on();
  DecodeStatus drawn = draw_status();
  const bool unrestored = !batch_.restores.empty() && fault_dice_.chance(config_.disturbances.unrestored);
  if (unrestored) model_.fail_next_restore();
  const TokenCount held = model_.held();
  batch_ids_.clear();
  each_part([this](const SimRequest& life) { batch_ids_.push_back(life.request->id); });
  const Duration copying = copying_took();
  const bool computes = !batch_.rows.empty() && !unrestored;
  const Duration computing = computes ? computing_takes(drawn, held) : Duration::zero();
  model_.run(batch_, drawn, step_, result_);
  if (faults_.any()) return;
  const DecodeStatus status = result_.status;
  now_ += copying + computing;
  if (computes) statistics_.step(batch_, status, computing, cost_.passes());
  result_.compute = computing;
  result_.saving = saving_;
  result_.restoring = restoring_;
  result_.finished = now_;
  if (status == DecodeStatus::ok) rows_computed();
  const bool failed = status == DecodeStatus::failed || status == DecodeStatus::no_room;
  if (failed) each_part([](SimRequest& life) { life.failed = true; });
  scheduler_.commit(batch_, result_);
  take_events();
  for (const RequestId id : batch_ids_) {
    faults_.expect(!failed || lives_.find(id) == nullptr, "one-terminal: a request survived its failed batch");
  }
  if (status != DecodeStatus::aborted) watch_.step_done(step_, now_);
}

// All copies of the step together, which is also how the scheduler learns what they cost.
Duration Simulation::copying_took() {
  std::int64_t saved = 0;
  std::int64_t restored = 0;
  for (const SlotSave& save : batch_.saves) saved += save.tokens;
  for (const SlotRestore& restore : batch_.restores) restored += restore.snapshot->tokens();
  saving_ = cost_.copy(saved);
  restoring_ = cost_.copy(restored);
  return saving_ + restoring_;
}

// A step that is given up ends at some time before its end, and one that an arrival cuts when that comes.
Duration Simulation::computing_takes(DecodeStatus& status, TokenCount held) {
  const TimePoint begin = now_ + saving_ + restoring_;
  Duration takes = cost_.cost(batch_, held, begin);
  if (status == DecodeStatus::aborted) {
    takes = Duration(static_cast<std::int64_t>(static_cast<double>(takes.count()) * fault_dice_.unit()));
  }
  const TimePoint end = meanwhile(begin + takes);
  if (end == begin + takes) return takes;
  status = DecodeStatus::aborted;
  return std::max(end - begin, Duration(1));
}

// Who has a slot for the first time.
void Simulation::note_starts() {
  for (const auto& sequence : scheduler_.running_sequences()) {
    SimRequest* const life = lives_.find(sequence->id());
    if (life == nullptr || life->has_started) continue;
    life->has_started = true;
    watch_.starts(*life);
  }
}

void Simulation::rows_computed() {
  if (batch_.rows.empty()) return;
  statistics_.contention.step(batch_, result_.compute, watch_, lives_);
  for (std::size_t i = 0; i < batch_ids_.size(); ++i) {
    SimRequest& life = *lives_.find(batch_ids_[i]);
    watch_.got_row(life, now_);
    if (life.plan.leaving == Leaving::after_rows && model_.length(life) >= life.plan.leaves_after) leave_at(life);
  }
}

// Nothing to compute: on to the next thing that happens outside; a little later when there is work all the same.
void Simulation::wait_for_work() {
  if (scheduler_.idle()) {
    watch_.moves_on();
    if (!queue_.empty()) now_ = std::max(now_, queue_.next());
    return;
  }
  now_ += milliseconds(1);
  if (!queue_.empty()) now_ = std::min(now_, std::max(now_ - milliseconds(1), queue_.next()));
  watch_.stands_still(now_);
}

DecodeStatus Simulation::draw_status() {
  const DisturbanceConfig& chance = config_.disturbances;
  if (fault_dice_.chance(chance.failed)) return DecodeStatus::failed;
  if (fault_dice_.chance(chance.no_room)) return DecodeStatus::no_room;
  if (fault_dice_.chance(chance.aborted)) return DecodeStatus::aborted;
  return DecodeStatus::ok;
}

void Simulation::take_events() {
  events_.clear();
  scheduler_.take_events(events_);
  for (const Event& event : events_) note(event);
}

void Simulation::note(const Event& event) {
  SimRequest* life = lives_.find(event.request);
  if (life == nullptr) return faults_.expect(false, "one-terminal: an event after the end, or of no request");
  statistics_.hash(event, life->serial, now_);
  check_event(event, *life, step_, now_, faults_);
  if (event.tokens > 0) note_text(*life, event);
  if (event.kind != Event::Kind::finished) return;
  switch (event.reason) {
    case FinishReason::stop:
    case FinishReason::length: return end(*life, Outcome::ok);
    case FinishReason::cancelled: return end(*life, Outcome::cancelled);
    case FinishReason::deadline: return end(*life, Outcome::deadline);
    case FinishReason::error: return end(*life, Outcome::failed);
  }
}

void Simulation::note_text(SimRequest& life, const Event& event) {
  statistics_.told(life, event, now_);
  const PlannedRequest& plan = life.plan;
  if (plan.leaving == Leaving::after_tokens && life.said >= plan.leaves_after) leave_at(life);
  if (plan.reads_per_s > 0) {
    const double read = to_seconds(now_ - life.first_token) * plan.reads_per_s;
    if (life.said - read > config_.clients.unread_max) leave_at(life);
  }
}

void Simulation::check_state() {
  const KvLedger& ledger = scheduler_.ledger();
  faults_.expect(scheduler_.consistent(), "conservation: the scheduler finds itself inconsistent");
  faults_.expect(scheduler_.running() + scheduler_.waiting() == accepted_, "one-terminal: a request got lost");
  faults_.expect(gate_.in_flight() == accepted_, "conservation: permits are not the requests that were let in");
  faults_.expect(accepted_ <= gate_.places(), "bounded: more requests were let in than there are places");
  faults_.expect(scheduler_.running() <= static_cast<std::size_t>(config_.scheduler.kv.slots), "bounded: running");
  faults_.expect(ledger.cells_reserved() <= config_.scheduler.kv.cells, "bounded: reserved cells");
  faults_.expect(ledger.cells_used() == model_.held_by_living(),
                 "conservation: the ledger's cells are not the model's");
  check_reuse();
}

void Simulation::check_reuse() {
  constexpr std::uint64_t kRecountEvery = 256;  // steps; it takes time with every entry
  const Reuse& reuse = scheduler_.reuse();
  const PrefixCache::Stats stats = reuse.cache_stats();
  faults_.expect(stats.bytes <= config_.scheduler.reuse.cache.bytes, "bounded: bytes of snapshots");
  faults_.expect(stats.pending <= scheduler_.running(),
                 "conservation: a prefix is announced that no sequence computes");
  if (step_ % kRecountEvery == 0) faults_.expect(reuse.consistent(), "conservation: the prefix cache");
}

void Simulation::expect_nothing_left() {
  faults_.expect(accepted_ == 0 && lives_.living() == 0, "one-terminal: a request never ended");
  faults_.expect(scheduler_.ledger().slots_used() == 0 && scheduler_.ledger().cells_used() == 0 &&
                     scheduler_.ledger().cells_reserved() == 0,
                 "conservation: slots or cells are left over");
  faults_.expect(scheduler_.reuse().consistent() && scheduler_.reuse().cache_stats().pending == 0,
                 "conservation: the prefix cache is left with something that it should not have");
  scheduler_.next_batch(now_, batch_);
  take_events();
  faults_.expect(batch_.empty(), "progress: a batch without sequences");
}

}  // namespace chasqui
