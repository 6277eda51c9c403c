// One thread with one model context and everything that belongs to it: scheduler, ledger, runner. Commands come in
// through a bounded inbox, events go out in one push and one signal per step; the worker never waits for a client
// (worker-never-waits). Owned by the Engine.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "core/event.h"
#include "engine/engine_metrics.h"
#include "engine/load_board.h"
#include "engine/runner.h"
#include "engine/slot_board.h"
#include "sched/scheduler.h"

namespace chasqui {

struct SubmitCommand {
  RequestPtr request;
};
struct CancelCommand {
  RequestId id;
  std::uint64_t step = 0;  // steps that were done when it was posted
};
// Forget what was computed for a tenant; `count` says how much that was when it is not negative any more.
struct ForgetCommand {
  std::uint32_t tenant = 0;
  std::shared_ptr<std::atomic<std::int64_t>> count;
};
// Cancel what is inside and end the thread. Only ~Worker posts it, so it is the last.
struct StopCommand {};
using Command = std::variant<SubmitCommand, CancelCommand, ForgetCommand, StopCommand>;

class Worker {
 public:
  struct Parts {
    std::unique_ptr<Model> model;
    std::shared_ptr<const Tokenizer> tokenizer;
    SchedulerConfig scheduler;
    std::size_t inbox_max = 0;
    Duration sleep_after{};  // without work the model sleeps; zero: never
  };

  // `clock`, `outbox`, `load`, `slots` and `metrics` outlive the worker. Starts the thread.
  Worker(Parts parts, const Clock& clock, Mailbox<Event>& outbox, LoadBoard& load, SlotBoard& slots,
         EngineMetrics& metrics);
  // Cancels what is inside and waits for the thread, at most one step.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Any thread. False when the inbox is full, which its size rules out for one submit and one cancel per request.
  bool post(Command command) { return inbox_.push(std::move(command)); }
  // The same for a cancel; when the running step reads nothing but this request's prompt, the step ends at once.
  bool cancel(RequestId id);

  // Any thread: when the worker last finished a step or went to sleep with nothing to do; kNever while it sleeps.
  TimePoint last_progress() const;
  // Any thread: the model sleeps.
  bool asleep() const { return asleep_.load(std::memory_order_relaxed); }

 private:
  void run();
  void take_in(Wait wait);
  void wait_for_commands();
  void wake_up();
  void show_slots();
  void compute();
  void deliver();
  void count_step();

  const Clock& clock_;
  Mailbox<Event>& outbox_;
  LoadBoard& load_;
  SlotBoard& slots_;
  EngineMetrics& metrics_;
  Mailbox<Command> inbox_;
  std::atomic<TimePoint::rep> last_progress_;
  std::atomic<bool> asleep_{false};
  std::atomic<std::uint64_t> steps_{0};    // done so far
  std::atomic<std::uint64_t> reading_{0};  // the request whose prompt is all that the running step computes; 0: none

  // Worker thread only.
  const Duration sleep_after_;
  const std::unique_ptr<Model> model_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  Scheduler scheduler_;
  Runner runner_;
  Batch batch_;
  BatchResult result_;
  std::vector<Command> commands_;
  std::vector<Event> events_;
  bool stopped_ = false;

  std::thread thread_;  // last: everything above exists before it starts
};

}  // namespace chasqui
