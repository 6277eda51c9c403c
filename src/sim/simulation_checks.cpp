// What a Simulation checks beside its models, events and watches: the scheduler's own books, and what is left at the
// end.
#include <algorithm>

#include "sim/simulation.h"

namespace chasqui {

void Simulation::check_state(const SimWorker& worker) {
  const KvLedger& ledger = worker.scheduler.ledger();
  const KvLedger::Layout& kv = config_.scheduler.kv;
  const std::size_t sequences = worker.scheduler.running() + worker.scheduler.waiting();
  faults_.expect(worker.scheduler.consistent(), "conservation: the scheduler finds itself inconsistent");
  faults_.expect(sequences == worker.accepted, "one-terminal: a request got lost");
  faults_.expect(gate_.in_flight() == accepted_, "conservation: permits are not the requests that were let in");
  faults_.expect(accepted_ <= gate_.places(), "bounded: more requests were let in than there are places");
  faults_.expect(worker.scheduler.running() <= static_cast<std::size_t>(kv.slots), "bounded: running");
  faults_.expect(ledger.cells_reserved() <= kv.cells, "bounded: reserved cells");
  faults_.expect(ledger.cells_used() == worker.model.held_by_living(),
                 "conservation: the ledger's cells are not the model's");
  check_reuse(worker);
}

void Simulation::check_reuse(const SimWorker& worker) {
  constexpr std::uint64_t kRecountEvery = 256;  // steps; it takes time with every entry
  const Reuse& reuse = worker.scheduler.reuse();
  const PrefixCache::Stats stats = reuse.cache_stats();
  faults_.expect(stats.bytes <= config_.scheduler.reuse.cache.bytes, "bounded: bytes of snapshots");
  faults_.expect(stats.pending <= worker.scheduler.running(),
                 "conservation: a prefix is announced that no sequence computes");
  if (worker.steps % kRecountEvery != 0) return;
  faults_.expect(reuse.consistent(), "conservation: the prefix cache");
  if (placement_) faults_.expect(placement_->consistent(), "conservation: the placement of requests");
}

// What the plan says of its passes is what libllama makes of the batch.
void Simulation::check_passes(const SimWorker& worker) {
  const bool counts = config_.scheduler.dense_slots || config_.cost.unified;
  faults_.expect(!counts || worker.batch.passes == worker.cost.passes(),
                 "passes: the plan expects others than the batch takes");
}

void Simulation::expect_nothing_left() {
  faults_.expect(accepted_ == 0 && lives_.living() == 0, "one-terminal: a request never ended");
  faults_.expect(!placement_ || placement_->in_flight() == 0, "conservation: a request that has ended is still placed");
  for (SimWorker& worker : workers_) {
    const KvLedger& ledger = worker.scheduler.ledger();
    faults_.expect(ledger.slots_used() == 0 && ledger.cells_used() == 0 && ledger.cells_reserved() == 0,
                   "conservation: slots or cells are left over");
    const Reuse& reuse = worker.scheduler.reuse();
    faults_.expect(reuse.consistent() && reuse.cache_stats().pending == 0,
                   "conservation: the prefix cache is left with something that it should not have");
    worker.scheduler.next_batch(worker.now, worker.batch);
    take_events(worker);
    faults_.expect(worker.batch.rows.empty(), "progress: rows without sequences");
  }
}

void Simulation::sum_up() {
  for (const SimWorker& worker : workers_) {
    statistics_.virtual_time = std::max(statistics_.virtual_time, worker.now - kStart);
    statistics_.moves += worker.model.moves();
    statistics_.recomputed_rows += worker.model.recomputed_rows();
    statistics_.prompt_rows += worker.model.prompt_rows();
    statistics_.prefix_waits += worker.scheduler.reuse().waits_begun();
    const PrefixCache::Stats cache = worker.scheduler.reuse().cache_stats();
    statistics_.cache.insertions += cache.insertions;
    statistics_.cache.evictions += cache.evictions;
    statistics_.drafted += worker.scheduler.speculation().stats().checked;
    statistics_.accepted += worker.scheduler.speculation().stats().accepted;
    statistics_.adapter_switches += worker.scheduler.adapter_turns().switches();
    statistics_.most_passed = std::max(statistics_.most_passed, worker.watch.most_passed());
    if (worker.disk) statistics_.disk_reads += worker.disk->reads();
  }
}

}  // namespace chasqui
