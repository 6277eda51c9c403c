#include "engine/worker.h"

#include <algorithm>

#include "base/cpu_account.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "model/automaton_gate.h"

namespace chasqui {
namespace {

// So many times what was predicted is worth a line in the log.
constexpr double kSurprising = 1.25;

constexpr int kNoArrival = kServiceClasses;

SchedulerConfig encoding_apart(SchedulerConfig config, const Model& model) {
  config.encodes = model.encoder() != nullptr;
  return config;
}

// The class of a request that arrives, as a number; kNoArrival for other commands.
int arrival_class(const Command& command) {
  const auto* submit = std::get_if<SubmitCommand>(&command);
  return submit != nullptr ? static_cast<int>(submit->request->service_class) : kNoArrival;
}

}  // namespace

Worker::Worker(Parts parts, const Clock& clock, Mailbox<Event>& outbox, LoadBoard& load, SlotBoard& slots,
               EngineMetrics& metrics)
    : clock_(clock),
      outbox_(outbox),
      load_(load),
      slots_(slots),
      metrics_(metrics),
      inbox_(parts.inbox_max),
      last_progress_(kNever.time_since_epoch().count()),
      sleep_after_(parts.sleep_after),
      number_(parts.number),
      model_(std::move(parts.model)),
      tokenizer_(std::move(parts.tokenizer)),
      tap_(std::move(parts.tap)),
      holdings_(std::move(parts.holdings)),
      scheduler_(encoding_apart(parts.scheduler, *model_)),
      exchange_(parts.exchange),
      disk_(open_disk(parts)),
      encodings_(start_encodings(parts)),
      runner_(*model_, *tokenizer_, clock, make_drafter(parts)),
      thread_([this, rates = std::move(parts.synthetic_acceptance)]() mutable {
        runner_.accept_synthetically(std::move(rates));
        run();
      }) {}

std::unique_ptr<Drafter> Worker::make_drafter(Parts& parts) {
  if (!parts.draft) return nullptr;
  return std::make_unique<Drafter>(std::move(parts.draft), model_->shape().vocabulary);
}

Worker::~Worker() {
  stop();
  thread_.join();
}

void Worker::stop() {
  std::vector<Command> last;
  last.emplace_back(StopCommand{});
  inbox_.push_all(last);  // an inbox that is full of cancels must not keep us from stopping
  model_->request_abort();
}

SnapshotLimits Worker::disk_limits(const SchedulerConfig& config) {
  return {.kv_bytes = config.reuse.cache.bytes, .tokens = config.kv.cells_per_slot};
}

// Before there is a thread.
std::unique_ptr<SnapshotDisk> Worker::open_disk(Parts& parts) {
  CHECK((parts.disk != nullptr) == parts.scheduler.reuse.disk.has_value(),
        "a disk tier needs a folder, and a folder a disk tier");
  if (!parts.disk) return nullptr;
  for (FoundSnapshot& file : parts.found) scheduler_.found_on_disk(std::move(file));
  const SnapshotStore::Stats there = scheduler_.disk()->stats().store;
  log_info("snapshots on disk", {{"folder", parts.disk->path()},
                                 {"files", there.files - there.foreign},
                                 {"foreign", there.foreign},
                                 {"bytes", there.bytes}});
  const SnapshotLimits limits = disk_limits(parts.scheduler);
  const auto deliver = [this](DiskOutcome outcome) {
    std::vector<Command> one;
    one.emplace_back(std::move(outcome));
    inbox_.push_all(one);  // never refused: a caller waits for it
  };
  if (exchange_ != nullptr) exchange_->join(deliver);
  return std::make_unique<SnapshotDisk>(std::move(parts.disk), limits, clock_, deliver);
}

bool Worker::cancel(RequestId id) {
  return inbox_.push(CancelCommand{id, steps_.load(std::memory_order_relaxed)}, [&] { abort_prefill_of(id); });
}

void Worker::post_all(std::vector<Command>& commands) {
  std::vector<RequestId> cancelled;
  int most_urgent = kNoArrival;
  for (Command& command : commands) {
    most_urgent = std::min(most_urgent, arrival_class(command));
    auto* cancel = std::get_if<CancelCommand>(&command);
    if (cancel == nullptr) continue;
    cancel->step = steps_.load(std::memory_order_relaxed);
    cancelled.push_back(cancel->id);
  }
  inbox_.push_all(commands, [&] {
    for (const RequestId id : cancelled) abort_prefill_of(id);
    abort_for_arrival(most_urgent);
  });
}

bool Worker::post(Command command) {
  const int arrival = arrival_class(command);
  return inbox_.push(std::move(command), [&] { abort_for_arrival(arrival); });
}

// While the worker cannot have the request: what it cuts is a step without it, or none (compute() clears the flag).
void Worker::abort_for_arrival(int service_class) {
  if (service_class <= cut_by_.load(std::memory_order_acquire)) model_->request_abort();
}

// … cannot have its cancel. As above.
void Worker::abort_prefill_of(RequestId cancelled) {
  if (reading_.load(std::memory_order_acquire) == cancelled.value) model_->request_abort();
}

// What came since the inbox was drained, and could not see what the step is: it cuts it as if it came now.
void Worker::cut_for_waiting() {
  inbox_.look_at_waiting([this](const Command& command) {
    abort_for_arrival(arrival_class(command));
    if (const auto* cancel = std::get_if<CancelCommand>(&command)) abort_prefill_of(cancel->id);
  });
}

// A step that takes long is no hang while libllama still goes from one operation to the next.
bool Worker::alive(TimePoint now, Duration stuck_after) const {
  const std::uint64_t operations = model_->operations();
  if (operations_seen_.exchange(operations, std::memory_order_relaxed) != operations) {
    operations_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  const TimePoint step{Duration(last_progress_.load(std::memory_order_relaxed))};
  const TimePoint operation{Duration(operations_at_.load(std::memory_order_relaxed))};
  return step == kNever || now - std::max(step, operation) < stuck_after;
}

void Worker::run() {
  name_this_thread("worker-" + std::to_string(number_));
  cpu_account().begin_steps();
  if (holdings_) holdings_->flush();  // files of an earlier process
  busy_at_ = clock_.now();
  while (!stopped_) {
    answer_slot_queries();
    const bool rests = scheduler_.idle() || scheduler_.waits_for_disk() || scheduler_.waits_for_units();
    const bool waits = rests && !scheduler_.reuse().frees();  // else next_batch() frees more
    process_commands(waits ? Wait::yes : Wait::no);           // submit, cancel, what came from the disk, stop
    planned_ = clock_.now();
    scheduler_.next_batch(planned_, batch_);  // decides, reserves
    order_disk();                             // before the step, which may be long
    order_encodings();
    if (scheduler_.tells_before_step() || !events_.empty()) send_events();
    if (!batch_.empty()) {
      compute();     // decode, sample, text, stop strings
      count_step();  // before the requests of the batch may go
      release_encoding();
      scheduler_.commit(batch_, result_);  // the only writer of sequences
      end_leases(batch_, result_);
      steps_.fetch_add(1, std::memory_order_relaxed);
      busy_at_ = clock_.now();
    }
    deliver();
  }
  cpu_account().end_steps();
  answer_slot_queries();
  keep_on_disk();
}

void Worker::process_commands(Wait wait) {
  if (wait == Wait::yes) {
    order_disk();
    CHECK(scheduler_.consistent(), "conservation");
    last_progress_.store(kNever.time_since_epoch().count(), std::memory_order_relaxed);
    cpu_account().end_steps();
    wait_for_commands();
    cpu_account().begin_steps();
  } else {
    inbox_.drain(commands_);
  }
  const TimePoint now = clock_.now();
  if (outbox_.over_capacity()) {
    log_error("results are not read: everything is cancelled", {{"worker", number_}, {"events", outbox_.size()}});
    scheduler_.cancel_all(now);
  }
  last_progress_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  for (Command& command : commands_) {
    if (auto* submit = std::get_if<SubmitCommand>(&command)) {
      take_request(std::move(submit->request), now);
    } else if (auto* cancel = std::get_if<CancelCommand>(&command)) {
      scheduler_.cancel(cancel->id, now);
      metrics_.cancel_steps.observe(static_cast<double>(steps_.load(std::memory_order_relaxed) - cancel->step));
    } else if (auto* forget = std::get_if<ForgetCommand>(&command)) {
      forget_tenant(std::move(*forget));
    } else if (auto* copy = std::get_if<CopySlotCommand>(&command)) {
      scheduler_.want_copy_of_slot(copy->slot, copy->tenant);
      asked_.push_back(std::move(*copy));
    } else if (auto* adopt = std::get_if<AdoptSlotCommand>(&command)) {
      adopt->answer->kept = scheduler_.adopt_slot(adopt->slot, adopt->tenant, std::move(adopt->copy), now);
      adopt->answer->tell();
    } else if (auto* outcome = std::get_if<DiskOutcome>(&command)) {
      take_outcome(std::move(*outcome));
    } else if (auto* encoding = std::get_if<EncodingOutcome>(&command)) {
      take_encoding(std::move(*encoding), now);
    } else if (const auto* rest = std::get_if<RestCommand>(&command)) {
      to_rest_ = rest->rest && !asleep();
      to_wake_ = !rest->rest;
    } else {
      scheduler_.cancel_all(now);
      stopped_ = true;
    }
  }
  if (asleep() && (to_wake_ || !scheduler_.idle())) wake_up();
  to_wake_ = false;
}

// What its answer begins with is said at once, so that it is said whatever comes of the request.
void Worker::take_request(RequestPtr request, TimePoint now) {
  scheduler_.add(request);
  if (request->begun.empty()) return;
  const std::optional<Sample> end = runner_.retell(*request, events_);
  if (!end) return;
  scheduler_.cancel(request->id, now, FinishReason::stop);
  scheduler_.take_events(events_);
  events_.back().stop_string = end->stop_string;
}

// Between two steps. What has left its slot in the last one is copied in the next.
void Worker::answer_slot_queries() {
  if (scheduler_.reuse().has_left() && !stopped_) return;
  for (CopySlotCommand& command : asked_) {
    command.answer->copy = scheduler_.copy_of_slot(command.slot, command.tenant);
    command.answer->tell();
  }
  asked_.clear();
}

void Worker::compute() {
  const bool one_prompt = batch_.kind == Batch::Kind::prefill && batch_.parts.size() == 1;
  model_->clear_abort();
  cut_by_.store(batch_.cut_by, std::memory_order_release);
  reading_.store(one_prompt ? batch_.parts.front().request->id.value : 0, std::memory_order_release);
  if (batch_.kind == Batch::Kind::prefill) cut_for_waiting();
  runner_.run(batch_, result_);
  // What a batch took that was not computed goes to the next one.
  if (!batch_.rows.empty() && result_.status == DecodeStatus::ok) {
    const CpuShare share = cpu_account().take_step();
    result_.cpu = share.cpu;
    result_.joules = share.joules;
  }
  reading_.store(0, std::memory_order_release);
  cut_by_.store(Batch::kUncut, std::memory_order_release);
}

// Who has which slot after this step.
void Worker::show_slots() {
  SlotId next{0};
  for (const auto& sequence : scheduler_.running_sequences()) {
    for (; next < sequence->slot(); ++next.value) slots_.write(next, {});
    const Request& request = sequence->request();
    slots_.write(next,
                 {request.id, static_cast<TokenCount>(request.prompt.size()), sequence->computed(), sequence->cached(),
                  sequence->generated(), request.max_tokens - sequence->generated(), sequence->cache_use()});
    ++next.value;
  }
  for (; next.value < slots_.slots(); ++next.value) slots_.write(next, {});
}

void Worker::send_events() {
  scheduler_.take_events(events_);
  metrics_.count_tokens(events_);
  for (Event& event : events_) {
    if (event.kind != Event::Kind::finished) continue;
    event.text = runner_.close(event.request);
    if (encodings_) encodings_->forget(event.request);
    metrics_.count_finished(event);
  }
  outbox_.push_all(events_);  // one signal for all of them
}

void Worker::deliver() {
  if (holdings_) holdings_->flush();  // before the client can ask for it again
  show_slots();
  metrics_.follow(metrics_.preemptions, scheduler_.preemptions());
  metrics_.follow(metrics_.slot_moves, scheduler_.moves());
  const ComputeStats compute = model_->compute_stats();
  metrics_.compute_threads.set(compute.threads);
  metrics_.follow(metrics_.restarted_steps, compute.cuts);
  if (number_ == 0) metrics_.media_cache_bytes.set(static_cast<std::int64_t>(compute.media_bytes));
  metrics_.follow_masks(grammar_mask_cost());
  metrics_.requests_running.set(static_cast<std::int64_t>(scheduler_.running()));
  const Load load = scheduler_.load();
  load_.write(load);
  record_step();
  for (std::size_t c = 0; c < kServiceClasses; ++c) metrics_.requests_waiting[c].set(load.waiting[c]);
  metrics_.kv_cells_used.set(scheduler_.ledger().cells_used());
  metrics_.kv_slots_used.set(scheduler_.ledger().slots_used());
  metrics_.kv_slots_cached.set(scheduler_.ledger().slots_cached());
  metrics_.follow_reuse(scheduler_.reuse());
  metrics_.follow_speculation(scheduler_.speculation());
  metrics_.follow_adapters(scheduler_.adapter_turns());
  metrics_.show_adapters(scheduler_.running_sequences(), scheduler_.waiting_sequences());
  send_events();
}

// After the step, so that an observer sees what it has changed.
void Worker::record_step() {
  if (batch_.empty()) return;
  add_occupancy(scheduler_.occupancy(), step_);
  step_ring_.write(step_);
}

void Worker::count_step() {
  step_ = describe_step(batch_, result_);
  step_.started = std::chrono::nanoseconds(planned_.time_since_epoch()).count();
  step_.took = std::chrono::nanoseconds(result_.finished - planned_).count();
  if (!batch_.saves.empty()) metrics_.kv_save_seconds.observe(to_seconds(result_.saving));
  if (!batch_.restores.empty()) metrics_.kv_restore_seconds.observe(to_seconds(result_.restoring));
  if (!result_.not_restored.empty()) {
    log_warning("a snapshot could not be restored; its tokens are computed again",
                {{"snapshots", result_.not_restored.size()}});
    return;
  }
  if (batch_.rows.empty()) return;
  const auto rows = batch_.rows.size() - static_cast<std::uint64_t>(batch_.padding_rows());
  if (result_.status == DecodeStatus::aborted) {
    metrics_.aborted_steps.add();
  } else if (result_.status != DecodeStatus::ok) {
    metrics_.failed_steps.add();
    // no_room would be a bug of the ledger, which has reserved these cells.
    const bool ledger = result_.status == DecodeStatus::no_room;
    const std::string_view reason = ledger ? "no room in the KV cache" : "the model gave up";
    log_error("a batch failed", {{"worker", number_}, {"rows", rows}, {"reason", reason}});
  } else {
    metrics_.count_step(batch_, result_.compute);
  }
  if (result_.status == DecodeStatus::ok && batch_.predicted > Duration::zero()) {
    const double ratio = to_seconds(result_.compute) / to_seconds(batch_.predicted);
    metrics_.step_prediction_ratio.observe(ratio);
    if (ratio > kSurprising) {
      log_debug("a step took longer than predicted", {{"prefill", batch_.kind == Batch::Kind::prefill},
                                                      {"rows", rows},
                                                      {"predicted_ms", to_milliseconds(batch_.predicted)},
                                                      {"took_ms", to_milliseconds(result_.compute)},
                                                      {"threads", model_->compute_stats().threads}});
    }
  }
  if (result_.status == DecodeStatus::ok) {
    metrics_.prompt_tokens.add(static_cast<std::uint64_t>(batch_.prompt_rows()));
    metrics_.count_adapters(batch_.adapters);
    if (result_.encoded) metrics_.count_encoding(true, result_.encoding);
  }
  metrics_.generation_tokens.add(result_.samples.size());
  const auto forced = std::ranges::count_if(result_.samples, &Sample::forced);
  metrics_.forced_tokens.add(static_cast<std::uint64_t>(forced));
}

}  // namespace chasqui
