#include "engine/worker.h"

#include "base/log.h"

namespace chasqui {

Worker::Worker(Parts parts, const Clock& clock, Mailbox<Event>& outbox, LoadBoard& load, EngineMetrics& metrics)
    : clock_(clock),
      outbox_(outbox),
      load_(load),
      metrics_(metrics),
      inbox_(parts.inbox_max),
      last_progress_(kNever.time_since_epoch().count()),
      model_(std::move(parts.model)),
      tokenizer_(std::move(parts.tokenizer)),
      scheduler_(parts.scheduler),
      runner_(*model_, *tokenizer_, clock),
      thread_([this] { run(); }) {}

Worker::~Worker() {
  std::vector<Command> last;
  last.emplace_back(StopCommand{});
  inbox_.push_all(last);  // an inbox that is full of cancels must not keep us from stopping
  thread_.join();
}

TimePoint Worker::last_progress() const { return TimePoint(Duration(last_progress_.load(std::memory_order_relaxed))); }

void Worker::run() {
  while (!stopped_) {
    take_in(scheduler_.idle() ? Wait::yes : Wait::no);  // submit, cancel, stop
    scheduler_.next_batch(clock_.now(), batch_);        // decides, reserves
    if (!batch_.empty()) {
      runner_.run(batch_, result_);        // decode, sample, text, stop strings
      scheduler_.commit(batch_, result_);  // the only writer of sequences
      count_step();
    }
    deliver();
  }
}

void Worker::take_in(Wait wait) {
  if (wait == Wait::yes) {
    CHECK(scheduler_.consistent(), "conservation");
    last_progress_.store(kNever.time_since_epoch().count(), std::memory_order_relaxed);
  }
  inbox_.drain(commands_, wait);
  const TimePoint now = clock_.now();
  if (outbox_.over_capacity()) {
    log_error("nobody takes results: everything is cancelled", {{"events", outbox_.size()}});
    scheduler_.cancel_all(now);
  }
  last_progress_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  for (Command& command : commands_) {
    if (auto* submit = std::get_if<SubmitCommand>(&command)) {
      scheduler_.add(std::move(submit->request));
    } else if (auto* cancel = std::get_if<CancelCommand>(&command)) {
      scheduler_.cancel(cancel->id, now);
    } else {
      scheduler_.cancel_all(now);
      stopped_ = true;
    }
  }
}

void Worker::deliver() {
  scheduler_.take_events(events_);
  load_.write(scheduler_.load());
  metrics_.requests_running.set(static_cast<std::int64_t>(scheduler_.running()));
  metrics_.requests_waiting.set(static_cast<std::int64_t>(scheduler_.waiting()));
  metrics_.kv_cells_used.set(scheduler_.ledger().cells_used());
  metrics_.kv_slots_used.set(scheduler_.ledger().slots_used());
  for (Event& event : events_) {
    if (event.kind != Event::Kind::finished) continue;
    event.text = runner_.close(event.request);
    metrics_.count_finished(event);
  }
  outbox_.push_all(events_);  // one signal for all events of the step
}

void Worker::count_step() {
  const auto rows = static_cast<std::uint64_t>(batch_.rows.size());
  if (result_.status != DecodeStatus::ok) {
    metrics_.decode_failures.add();
    // no_room would be a bug of the ledger, which has promised these cells.
    const bool ledger = result_.status == DecodeStatus::no_room;
    log_error("a batch failed", {{"rows", rows}, {"reason", ledger ? "no room in the KV cache" : "the model gave up"}});
  } else if (batch_.kind == Batch::Kind::decode) {
    metrics_.decode_steps.add();
    metrics_.decode_rows.observe(static_cast<double>(rows));
    metrics_.decode_step_seconds.observe(to_seconds(result_.compute));
  } else {
    metrics_.prefill_steps.add();
    metrics_.prompt_tokens.add(rows);
    metrics_.prefill_rows.observe(static_cast<double>(rows));
    metrics_.prefill_step_seconds.observe(to_seconds(result_.compute));
  }
  metrics_.generation_tokens.add(result_.samples.size());
}

}  // namespace chasqui
