// One thread with one model context and everything that belongs to it: scheduler, ledger, runner. Commands come in
// through a bounded inbox, events go out in one push and one signal per step (two where a step tells something before
// it); the worker never waits for a client (worker-never-waits), nor for the disk and what encodes pictures, whose
// threads have inboxes of their own and answer with a command. Owned by the Engine.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "core/event.h"
#include "engine/engine_metrics.h"
#include "engine/load_board.h"
#include "engine/media_encodings.h"
#include "engine/runner.h"
#include "engine/slot_board.h"
#include "engine/snapshot_disk.h"
#include "engine/snapshot_exchange.h"
#include "engine/step_ring.h"
#include "sched/scheduler.h"

namespace chasqui {

struct SubmitCommand {
  RequestPtr request;
};
struct CancelCommand {
  RequestId id;
  std::uint64_t step = 0;  // steps that its worker had done when it was posted there
};
// What all workers forget together. The last of them tells, on its thread.
struct Forgetting {
  explicit Forgetting(std::size_t workers, std::function<void(Result<std::size_t>)> then)
      : left(workers), tell(std::move(then)) {}

  // A worker, before it is done itself: something else of it will be.
  void also() { left.fetch_add(1); }
  void done(std::size_t copies, bool erased) {
    count.fetch_add(copies);
    if (!erased) files_left.store(true);
    if (left.fetch_sub(1) > 1) return;
    // What `tell` holds belongs to who asked, and goes before this does.
    const auto telling = std::move(tell);
    if (!files_left.load()) return telling(count.load());
    telling(Error{ErrorCode::unavailable,
                  "it is out of memory, but not all files of the disk cache could be removed (the log says why): retry",
                  ""});
  }

  std::atomic<std::size_t> left;
  std::atomic<std::size_t> count{0};
  std::atomic<bool> files_left{false};
  std::function<void(Result<std::size_t>)> tell;
};
// Forget what was computed for a tenant. Done when no file of it is left on disk, whatever happens to the machine.
struct ForgetCommand {
  Tenant tenant;
  std::shared_ptr<Forgetting> forgetting;
};
// What became of one of the next two; `done` is set last.
struct SlotAnswer {
  SlotCopy copy;
  bool kept = false;
  std::atomic<bool> done{false};

  void tell() {
    done.store(true);
    done.notify_all();
  }
};
// Say what a tenant's latest sequence in a slot has left. Slots are numbered through all workers.
struct CopySlotCommand {
  std::int32_t slot = 0;
  Tenant tenant;
  std::shared_ptr<SlotAnswer> answer;
};
// Keep what was said so, earlier.
struct AdoptSlotCommand {
  std::int32_t slot = 0;
  Tenant tenant;
  SlotCopy copy;
  std::shared_ptr<SlotAnswer> answer;
};
// Let the model sleep as soon as there is nothing to compute, however long that has been so; or wake it.
struct RestCommand {
  bool rest = true;
};
// Cancel what is inside and end the thread.
struct StopCommand {};
using Command = std::variant<SubmitCommand, CancelCommand, ForgetCommand, CopySlotCommand, AdoptSlotCommand,
                             RestCommand, StopCommand, DiskOutcome, EncodingOutcome>;

class Worker {
 public:
  // At the end, what is most worth keeping is written to disk first, and for so long.
  static constexpr Duration kKeepFor = seconds(10);

  struct Parts {
    std::unique_ptr<Model> model;
    std::unique_ptr<Model> draft;              // drafts for it, with scheduler.speculation.draft_model; or null
    std::vector<double> synthetic_acceptance;  // see EngineConfig
    std::shared_ptr<const Tokenizer> tokenizer;
    SchedulerConfig scheduler;
    std::unique_ptr<SchedulerTap> tap;  // scheduler.tap; null: nothing is recorded
    std::unique_ptr<HoldingLog> holdings;  // scheduler.reuse.holdings; null: nothing is published
    std::size_t inbox_max = 0;
    std::shared_ptr<SnapshotFolder> disk;  // with scheduler.reuse.disk
    std::vector<FoundSnapshot> found;      // what is in it, all workers' files
    SnapshotExchange* exchange = nullptr;  // with `disk`; is stopped before the worker goes; null: nothing is shared
    std::shared_ptr<EncodingFolder> encodings;  // null: pictures and sounds are kept in memory alone
    Duration sleep_after{};                // without work the model sleeps; zero: never
    std::size_t number = 0;                // for the log
  };

  // What would fit neither into the cache nor into a slot of such a worker is of no use.
  static SnapshotLimits disk_limits(const SchedulerConfig& config);

  // `clock`, `outbox`, `load`, `slots` and `metrics` outlive the worker. Starts the thread.
  Worker(Parts parts, const Clock& clock, Mailbox<Event>& outbox, LoadBoard& load, SlotBoard& slots,
         EngineMetrics& metrics);
  // stop(), and waits for the thread: at most one step, and with a disk some seconds for what is to be kept there.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Any thread. False when the inbox is full, which its size rules out for one submit and one cancel per request.
  bool post(Command command);
  // The same for a cancel; when the running step reads nothing but this request's prompt, the step ends at once.
  bool cancel(RequestId id);

  // Takes all of them, however many there are; says of cancels at which step they come.
  void post_all(std::vector<Command>& commands);
  // Cancels what is inside and ends the thread, without waiting for it. Its caller posts nothing afterwards.
  void stop();
  // Any thread, before stop(): what is kept on disk then is not written beyond this time.
  void keep_until(TimePoint time) { keep_until_.store(time.time_since_epoch().count(), std::memory_order_relaxed); }

  // Any thread: not longer ago than this it began a step, or its model went on to another operation; or it has nothing
  // to do, or wakes its model. Operations are compared with those that the call before saw.
  bool alive(TimePoint now, Duration stuck_after) const;
  // Any thread: its model sleeps.
  bool asleep() const { return asleep_.load(std::memory_order_relaxed); }
  // Any thread: how busy it was after its last step.
  Load load() const { return load_.read(); }
  // Any thread: what its newest steps were.
  const StepRing& steps() const { return step_ring_; }

 private:
  std::unique_ptr<SnapshotDisk> open_disk(Parts& parts);
  std::unique_ptr<Drafter> make_drafter(Parts& parts);
  void run();
  void abort_prefill_of(RequestId cancelled);
  void abort_for_arrival(int service_class);
  void cut_for_waiting();
  void process_commands(Wait wait);
  void take_request(RequestPtr request, TimePoint now);
  void wait_for_commands();
  void wake_up();
  void answer_slot_queries();
  void forget_tenant(ForgetCommand command);
  void erase_shared(const ForgetCommand& command);
  bool erases_shared(std::uint64_t tenant);
  void take_outcome(DiskOutcome outcome);
  void order_disk();
  std::unique_ptr<MediaEncodings> start_encodings(Parts& parts);
  void order_encodings();
  void take_encoding(EncodingOutcome outcome, TimePoint now);
  void release_encoding();
  void copy_slots_out();
  void keep_on_disk();
  void compute();
  void show_slots();
  void send_events();
  void deliver();
  void count_step();
  void record_step();

  const Clock& clock_;
  Mailbox<Event>& outbox_;
  LoadBoard& load_;
  SlotBoard& slots_;
  EngineMetrics& metrics_;
  Mailbox<Command> inbox_;
  // When it last took commands in, as it does before each step; kNever while it has nothing to do, or wakes its model.
  std::atomic<TimePoint::rep> last_progress_;
  // Operations of the model, as of the last alive(), and when it had first seen so many.
  mutable std::atomic<std::uint64_t> operations_seen_{0};
  mutable std::atomic<TimePoint::rep> operations_at_{0};
  std::atomic<bool> asleep_{false};
  std::atomic<std::uint64_t> steps_{0};     // done so far
  std::atomic<std::uint64_t> reading_{0};   // the request whose prompt is all that the running step computes; 0: none
  std::atomic<int> cut_by_{Batch::kUncut};  // arrivals of which class, or a more urgent one, cut the running step

  // Worker thread only, but for Model::request_abort().
  const Duration sleep_after_;
  const std::size_t number_;
  const std::unique_ptr<Model> model_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::unique_ptr<SchedulerTap> tap_;
  const std::unique_ptr<HoldingLog> holdings_;
  Scheduler scheduler_;
  SnapshotExchange* const exchange_;          // null: nothing is shared
  const std::unique_ptr<SnapshotDisk> disk_;  // after inbox_, which its thread writes to; null: there is none
  std::vector<DiskOrder> orders_;
  const std::unique_ptr<MediaEncodings> encodings_;  // as disk_; null: the model encodes nothing, or in its steps
  std::vector<EncodingOrder> encoding_orders_;
  Runner runner_;
  TimePoint planned_{};
  StepRecord step_;  // the one planned then
  StepRing step_ring_;
  Batch batch_;
  TimePoint busy_at_{};  // when it had something to compute last, or began
  BatchResult result_;
  std::vector<Command> commands_;
  std::vector<Event> events_;
  struct Forgotten {
    std::size_t copies = 0;
    std::shared_ptr<Forgetting> forgetting;
  };
  // Tenants (LastingKey::tenant) of which the shared store may still have something, until each is set.
  std::vector<std::pair<std::uint64_t, std::shared_ptr<std::atomic<bool>>>> erased_shared_;
  std::map<std::uint64_t, Forgotten> forgotten_;  // in memory, while files are removed; by ticket of DiskTier::forget()
  std::uint64_t last_ticket_ = 0;
  std::vector<CopySlotCommand> asked_;  // of slots; answered as soon as all that has left them is copied
  std::atomic<Duration::rep> keep_until_{kNever.time_since_epoch().count()};
  bool stopped_ = false;
  bool to_rest_ = false;  // see RestCommand
  bool to_wake_ = false;

  std::thread thread_;  // last: everything above exists before it starts
};

}  // namespace chasqui
