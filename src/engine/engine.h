// The front door of the computing side: takes valid requests from any thread, gives their events to one reader (the
// loop, or a program that uses libchasqui without a server), and knows nothing of sockets or JSON.
//
//   submit() ─▶ inbox ─▶ Worker ─▶ outbox + wake-up ─▶ take_events()
//
// Every request that submit() accepts gets exactly one finished event (one-terminal).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/wakeup.h"
#include "core/event.h"
#include "engine/engine_metrics.h"
#include "engine/load_board.h"
#include "engine/worker.h"
#include "model/model.h"
#include "model/tokenizer.h"

namespace chasqui {

struct EngineConfig {
  std::size_t waiting_max = 512;  // requests that may wait for a slot
  ReuseConfig reuse;              // cut_anywhere comes from the model
  SchedulerTargets targets;
  Policy policy = Policy::chasqui;
  std::shared_ptr<SnapshotFolder> disk;  // with reuse.disk; of all workers together
  Duration stuck_after = seconds(30);    // a step that takes longer means that the worker hangs
};

class Engine {
 public:
  // `clock` and `wakeup` outlive the engine. `wakeup` is signalled whenever take_events() has something new.
  Engine(const EngineConfig& config, std::unique_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer,
         const Clock& clock, Wakeup& wakeup);
  // Cancels what still runs and waits for the worker, at most one step.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread.
  RequestId next_id() { return RequestId{next_id_.fetch_add(1, std::memory_order_relaxed)}; }
  // overloaded when too many wait, unavailable while draining, context_too_long when it was made with other limits
  // than shape() allows. Takes effect between two steps.
  Result<void> submit(RequestPtr request);
  // Harmless for requests that have ended. The finished event still comes.
  void cancel(RequestId id);
  // No more submits; what is inside goes on to its end.
  void drain() { draining_.store(true, std::memory_order_relaxed); }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }
  // Submitted, and its finished event not yet taken.
  std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  // The worker sleeps, or has moved lately.
  bool alive(TimePoint now) const;

  // One reader thread. Replaces the content of `events` by everything that happened since the last call.
  void take_events(std::vector<Event>& events);

  // How busy the worker was after its last step. Any thread.
  Load load() const { return load_.read(); }
  const ModelShape& shape() const { return shape_; }
  EngineMetrics& metrics() { return metrics_; }

 private:
  const EngineConfig config_;
  const ModelShape shape_;
  const std::size_t in_flight_max_;

  EngineMetrics metrics_;
  LoadBoard load_;
  Mailbox<Event> outbox_;
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<bool> draining_{false};
  std::unique_ptr<Worker> worker_;
};

}  // namespace chasqui
