// The front door of the computing side: takes valid requests from any thread, gives their events to one reader (the
// loop, or a program that uses libchasqui without a server), and knows nothing of sockets or JSON.
//
//                                    ┌▶ inbox ─▶ Worker 0 ─┐
//   submit() ─▶ inbox ─▶ Dispatcher ─┤                     ├─▶ outbox + wake-up ─▶ take_events()
//                                    └▶ inbox ─▶ Worker 1 ─┘
//
// One worker needs no dispatcher: submit() then writes to its inbox at once.
// Every request that submit() accepts gets exactly one finished event (one-terminal).
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "base/wakeup.h"
#include "core/event.h"
#include "engine/dispatcher.h"
#include "engine/engine_metrics.h"
#include "engine/load_board.h"
#include "engine/slot_board.h"
#include "engine/worker.h"
#include "model/model.h"
#include "model/tokenizer.h"
#include "sched/slot_policy.h"
#include "sched/speculation.h"

namespace chasqui {

// Sizes are of all workers together, each gets an equal part.
struct EngineConfig {
  std::size_t beyond_slots_max = kSizeLimit<"queue_requests">;  // so many requests more than there are slots
  ReuseConfig reuse;                                            // cut_anywhere comes from the model
  SchedulerTargets targets;
  const SlotPolicy* policy = &fair_policy();
  TokenCount draft_tokens_max = 0;        // of what a sequence says next, checked in one step; 0: none are made
  TokenCount draft_tokens_min = 0;        // … and at least so many, whether that pays or not
  TokenCount ngram = NgramIndex::kNgram;  // see SpeculationConfig
  // For benchmarks: how often draft tokens count as accepted, by position, the last one for all that follow; empty: as
  // they are.
  std::vector<double> synthetic_acceptance;
  std::vector<std::string> adapters;                   // names, for metrics
  std::shared_ptr<SnapshotFolder> disk;                // with reuse.disk; of all workers together
  SharedSnapshotStores shared_snapshots;               // with `disk`; what nodes share
  std::shared_ptr<EncodingFolder> encodings;  // … of pictures and sounds; null: they are kept in memory alone
  Duration sleep_after{};                              // a worker without work puts its model to sleep; zero: never
  Duration stuck_after = kTimeLimit<"stuck_seconds">;  // a step that takes longer means that the worker hangs
  std::size_t pins_max = 65'536;                       // sessions that belong to a worker
  std::uint64_t first_request = 1;                     // number of it, so that those of several engines differ
  // What records the scheduler of the worker with this number, which is made so; none: nothing does.
  std::function<std::unique_ptr<SchedulerTap>(const SchedulerConfig&, std::size_t worker)> tap{};
  // Where a worker tells what it holds; none: nothing is published.
  std::function<std::unique_ptr<HoldingLog>()> holdings{};
};

using Models = std::vector<std::unique_ptr<Model>>;
// Slots and cells of all together; the rest is of each. REQUIRES: there are some, and they were made alike
ModelShape shape_of_all(const Models& models);

class Engine {
 public:
  // One worker for each model, with one of `drafts` to draft for it where there are any. `clock` and `wakeup` outlive
  // the engine. `wakeup` is signalled whenever take_events() has something new.
  Engine(const EngineConfig& config, Models models, std::shared_ptr<const Tokenizer> tokenizer, const Clock& clock,
         Wakeup& wakeup, Models drafts = {});
  Engine(const EngineConfig& config, std::unique_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer,
         const Clock& clock, Wakeup& wakeup);
  // Cancels what still runs and waits for the workers: at most one step, and for what goes to disk (engine/worker.h).
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread.
  RequestId next_id() { return RequestId{next_id_.fetch_add(1, std::memory_order_relaxed)}; }
  // overloaded when too many wait, unavailable while draining, context_too_long when it was made with other limits
  // than shape() allows. Takes effect between two steps. `again`: it goes on with one that was inside, also while
  // draining.
  enum class Entry { fresh, again };
  Result<void> submit(RequestPtr request, Entry entry = Entry::fresh);
  // Harmless for requests that have ended. The finished event still comes.
  void cancel(RequestId id);
  // The session with this pin has ended: no more requests with it will come. The owner of Request::pin calls it, once.
  void unpin(std::uint64_t pin);
  // No more submits; what is inside goes on to its end.
  void drain() { draining_.store(true, std::memory_order_relaxed); }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }
  // Submitted, and its finished event not yet taken.
  std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  // All workers sleep, or have moved lately.
  bool alive(TimePoint now) const { return !stuck_worker(now); }
  // The first that has not.
  std::optional<std::size_t> stuck_worker(TimePoint now) const;

  bool stuck(std::size_t worker, TimePoint now) const { return !workers_[worker]->alive(now, config_.stuck_after); }
  Duration stuck_after() const { return config_.stuck_after; }
  // What a worker has, of all that have not ended; none: whatever there is, for it is the only one. Any thread but the
  // workers' and the dispatcher's.
  std::optional<std::vector<RequestId>> requests_of(std::size_t worker);

  // Any thread: forgets what was computed for a tenant, or for all where they share it, in memory and in files. When
  // every worker has ended its step, and no file is left on disk, `then` is told how many copies of sequences that
  // were, on a worker's thread. Error: unavailable when files could not be removed.
  void forget(const Tenant& tenant, std::function<void(Result<std::size_t>)> then);
  // The same for a thread that can wait, any but the workers'.
  Result<std::size_t> forget(const Tenant& tenant);
  // Any thread but the workers', with reuse.notes_slots: what the tenant's latest sequence that was in this slot, or
  // said so, has left in memory. Waits as forget() does.
  SlotCopy copy_of_slot(SlotId slot, const Tenant& tenant);
  // … and brings such a copy back, into the memory of the worker that has this slot, of the first one where it is a
  // Request::slot_label above all. False: it does not fit. REQUIRES: of this tenant, with as many tokens as its KV
  bool adopt_slot(SlotId slot, const Tenant& tenant, SlotCopy copy);
  // The models of all workers sleep, see EngineConfig::sleep_after.
  bool sleeping() const;
  // Any thread: each worker's model sleeps as soon as it has nothing to compute; the next request wakes it.
  void rest();
  // Any thread: those that sleep wake. EngineMetrics::failed_wakes counts those that cannot.
  void wake();

  // Any thread, before the destructor: what it keeps on disk is not written beyond this time.
  void keep_until(TimePoint time);

  // One reader thread. Replaces the content of `events` by everything that happened since the last call.
  void take_events(std::vector<Event>& events);

  // How busy the workers were after their last steps, as admission wants to know it: sums, and of times those that a
  // request meets that may go to any worker. Any thread.
  Load load() const;
  // KV positions that hold something, of all workers. Any thread.
  std::int64_t cells_used() const;
  const ModelShape& shape() const { return shape_; }
  // What would be larger fits into no worker's memory, or no slot.
  SnapshotLimits snapshot_limits() const {
    return {.kv_bytes = config_.reuse.cache.bytes / workers_.size(), .tokens = shape_.cells_per_slot};
  }
  // Who has it, of shape().slots; those of the first worker come first. Any thread.
  SlotUse slot(SlotId slot) const;
  std::size_t workers() const { return workers_.size(); }
  // What the newest steps of a worker were, and what they were to keep. Any thread.
  const StepRing& steps(std::size_t worker) const { return workers_[worker]->steps(); }
  const SchedulerTargets& targets() const { return config_.targets; }
  // The source of draft tokens in each worker.
  const SpeculationConfig& speculation() const { return speculation_; }
  EngineMetrics& metrics(std::size_t worker = 0) { return metrics_[worker]; }
  // Of all workers. Any thread.
  std::uint64_t count(const Counter EngineMetrics::*which) const;
  IngressMetrics& door_metrics() { return door_metrics_; }
  const DispatchMetrics& dispatch_metrics() const { return dispatch_metrics_; }
  // All of them. Counters and gauges have `labels`, and one for each worker where there are several but not many: a
  // page is at most 64 KiB.
  void add_metrics_to(MetricsPage& page, const std::string& labels = {}) const;
  // The same under the names of vLLM and llama-server, for dashboards that read those.
  void add_compat_metrics_to(MetricsPage& page, const std::string& model_name) const;
  // The adapter in this place has come, while no request can have it, or has gone (no name). Loop thread.
  void name_adapter(std::int32_t place, const std::string& name);
  // What the page has from the first adapter on, where there was none at start; and what it has of each.
  void add_adapters_to(MetricsPage& page, const std::string& model_name) const;
  void add_adapter_to(MetricsPage& page, std::int32_t place) const;

 private:
  void tell_all(RestCommand command);
  void start_workers(Models models, Models drafts, const std::shared_ptr<const Tokenizer>& tokenizer,
                     const Clock& clock);
  DispatcherConfig dispatcher_config() const;

  const EngineConfig config_;
  const ModelShape shape_;
  const std::size_t in_flight_max_;

  SpeculationConfig speculation_;      // constant after construction
  std::deque<EngineMetrics> metrics_;  // by worker
  std::deque<LoadBoard> loads_;        // by worker
  std::deque<SlotBoard> slots_;        // by worker
  IngressMetrics door_metrics_;
  DispatchMetrics dispatch_metrics_;
  Mailbox<Event> outbox_;
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<bool> draining_{false};
  std::unique_ptr<SnapshotExchange> exchange_;  // null: nothing is shared
  Workers workers_;
  std::unique_ptr<Dispatcher> dispatcher_;  // none for one worker
};

}  // namespace chasqui
