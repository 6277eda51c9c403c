#include "engine/engine.h"

#include "base/log.h"

namespace chasqui {
namespace {

SchedulerConfig scheduler_config(const EngineConfig& config, const ModelShape& shape) {
  SchedulerConfig out;
  out.kv = {shape.slots, shape.cells, shape.cells_per_slot, shape.unified};
  out.rows_max = shape.rows_max;
  out.dense_slots = shape.dense_slots;
  out.reuse = config.reuse;
  out.reuse.cache.cut_anywhere = shape.cuts_snapshots;
  out.targets = config.targets;
  out.policy = config.policy;
  return out;
}

// Events of each slot that may wait for the loop. Seconds of the fastest models and minutes of others: a loop that is
// this far behind is stuck, not busy.
constexpr std::size_t kOutboxEventsPerSlot = 4096;

}  // namespace

Engine::Engine(const EngineConfig& config, std::unique_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer,
               const Clock& clock, Wakeup& wakeup)
    : config_(config),
      shape_(model->shape()),
      in_flight_max_(static_cast<std::size_t>(shape_.slots) + config.waiting_max),
      outbox_(static_cast<std::size_t>(shape_.slots) * kOutboxEventsPerSlot, [&wakeup] { wakeup.signal(); }) {
  metrics_.kv_cells_total.set(shape_.cells);
  metrics_.kv_slots_total.set(shape_.slots);
  Worker::Parts parts;
  parts.scheduler = scheduler_config(config, shape_);
  parts.model = std::move(model);
  parts.tokenizer = std::move(tokenizer);
  parts.disk = config.disk;
  if (config.disk) parts.found = config.disk->scan(Worker::disk_limits(parts.scheduler));
  // Each request in flight posts at most one submit and one cancel; the rest is for drain and late cancels.
  parts.inbox_max = 2 * in_flight_max_ + 16;
  worker_ = std::make_unique<Worker>(std::move(parts), clock, outbox_, load_, metrics_);
}

Engine::~Engine() {
  drain();
  worker_.reset();
}

Result<void> Engine::submit(RequestPtr request) {
  const auto cells = static_cast<std::int64_t>(request->prompt.size()) + request->max_tokens;
  if (cells > shape_.cells_per_slot) {
    return Error{ErrorCode::context_too_long, "the request was made for a larger context than this engine has", ""};
  }
  if (draining()) return Error{ErrorCode::unavailable, "the server is shutting down; retry elsewhere or later", ""};
  if (in_flight_.fetch_add(1, std::memory_order_relaxed) >= in_flight_max_ ||
      !worker_->post(SubmitCommand{std::move(request)})) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    metrics_.requests_refused.add();
    return Error{ErrorCode::overloaded, "too many requests are waiting; retry later", ""};
  }
  return {};
}

void Engine::cancel(RequestId id) {
  if (!worker_->cancel(id)) log_warning("a cancel was lost: the inbox is full", {{"request", id.value}});
}

bool Engine::alive(TimePoint now) const {
  const TimePoint last = worker_->last_progress();
  return last == kNever || now - last < config_.stuck_after;
}

void Engine::take_events(std::vector<Event>& events) {
  outbox_.drain(events);
  std::size_t finished = 0;
  for (const Event& event : events) finished += event.kind == Event::Kind::finished ? 1 : 0;
  if (finished > 0) in_flight_.fetch_sub(finished, std::memory_order_relaxed);
}

}  // namespace chasqui
