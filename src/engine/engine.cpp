#include "engine/engine.h"

#include <algorithm>

#include "base/limits.h"
#include "base/log.h"
#include "engine/compat_metrics.h"
#include "engine/load_sum.h"
#include "model/heads.h"

namespace chasqui {
namespace {

// Of the worker with this `number`: what all share is divided among them.
SchedulerConfig scheduler_config(const EngineConfig& config, const ModelShape& shape, std::size_t workers,
                                 std::size_t number) {
  SchedulerConfig out;
  out.kv = {shape.slots, shape.cells, shape.cells_per_slot, shape.unified};
  out.rows_max = shape.rows_max;
  out.dense_slots = shape.dense_slots;
  out.cuts_joined = shape.trims_anywhere;
  out.exchanges = shape.cuts_snapshots;
  out.reuse = config.reuse;
  out.reuse.first_slot = static_cast<std::int32_t>(number) * shape.slots;
  out.reuse.cache.bytes /= workers;
  if (out.reuse.disk) {
    out.reuse.disk->bytes /= workers;
    out.reuse.disk->queue_bytes /= workers;
    out.reuse.disk->worker = static_cast<std::uint32_t>(number);
    out.reuse.disk->workers = static_cast<std::uint32_t>(workers);
  }
  out.reuse.cache.cut_anywhere = shape.cuts_snapshots;
  out.reuse.kv_block = shape.kv_block;
  out.reuse.kv_token_bytes = shape.kv_token_bytes;
  out.reuse.keeps_slots = !shape.unified;  // cells of a pool are needed at once
  out.reuse.slots_ready = slots_kept_ready(shape.slots);
  // Rejected draft tokens have to be taken back.
  out.speculation.draft_tokens_max =
      shape.trims_anywhere ? config.draft_tokens_max : std::min(config.draft_tokens_max, shape.rollback);
  // libllama takes a batch of recurrent sequences with different numbers of rows apart, and may then move states
  // without those behind their newest rows.
  out.speculation.alone = !shape.trims_anywhere;
  out.speculation.draft_tokens_min = config.draft_tokens_min;
  out.speculation.ngram = config.ngram;
  out.speculation.always = !config.synthetic_acceptance.empty();
  out.speculation.outputs_max = shape.outputs_max;
  out.targets = config.targets;
  out.policy = config.policy;
  return out;
}

Models one(std::unique_ptr<Model> model) {
  Models models;
  models.push_back(std::move(model));
  return models;
}

// With more workers the page shows sums only.
constexpr std::size_t kWorkersShown = 8;

// Events that may wait for the loop, of each slot and of each request. Seconds of the fastest models and minutes of
// others: a loop that is this far behind is stuck, not busy.
constexpr std::size_t kOutboxEventsPerSlot = kSizeLimit<"undelivered_events">;
// All that wait are told their places at once, each second, and may end at once.
constexpr std::size_t kOutboxEventsPerRequest = 16;

}  // namespace

ModelShape shape_of_all(const Models& models) {
  CHECK(!models.empty());
  ModelShape all = models.front()->shape();
  for (std::size_t i = 1; i < models.size(); ++i) {
    const ModelShape& shape = models[i]->shape();
    CHECK(shape.cells_per_slot == all.cells_per_slot && shape.slots == models.front()->shape().slots);
    all.slots += shape.slots;
    all.cells += shape.cells;
  }
  return all;
}

Engine::Engine(const EngineConfig& config, std::unique_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer,
               const Clock& clock, Wakeup& wakeup)
    : Engine(config, one(std::move(model)), std::move(tokenizer), clock, wakeup) {}

Engine::Engine(const EngineConfig& config, Models models, std::shared_ptr<const Tokenizer> tokenizer,
               const Clock& clock, Wakeup& wakeup, Models drafts)
    : config_(config),
      shape_(shape_of_all(models)),
      in_flight_max_(static_cast<std::size_t>(shape_.slots) + config.beyond_slots_max),
      outbox_(static_cast<std::size_t>(shape_.slots) * kOutboxEventsPerSlot + in_flight_max_ * kOutboxEventsPerRequest,
              [&wakeup] { wakeup.signal(); }) {
  next_id_ = config.first_request;
  start_workers(std::move(models), std::move(drafts), tokenizer, clock);
  if (workers_.size() > 1) {
    dispatcher_ = std::make_unique<Dispatcher>(dispatcher_config(), workers_, clock, outbox_, dispatch_metrics_);
  }
}

void Engine::start_workers(Models models, Models drafts, const std::shared_ptr<const Tokenizer>& tokenizer,
                           const Clock& clock) {
  CHECK(drafts.empty() || drafts.size() == models.size(), "a draft model for each worker, or for none");
  // Before any of them writes: what is written while the folder is looked through would be taken for a leftover.
  std::vector<FoundSnapshot> found;
  if (config_.disk) {
    found =
        config_.disk->scan(Worker::disk_limits(scheduler_config(config_, models.front()->shape(), models.size(), 0)));
  }
  if (config_.shared_snapshots.index) {
    const SnapshotLimits limits =
        Worker::disk_limits(scheduler_config(config_, models.front()->shape(), models.size(), 0));
    exchange_ = std::make_unique<SnapshotExchange>(
        SnapshotExchange::Parts{config_.shared_snapshots, config_.disk, limits}, clock);
  }
  for (std::unique_ptr<Model>& model : models) {
    const ModelShape shape = model->shape();
    EngineMetrics& metrics = metrics_.emplace_back();
    metrics.kv_cells_total.set(shape.cells);
    metrics.kv_slots_total.set(shape.slots);
    metrics.name_adapters(config_.adapters);
    metrics_.front().adapters.set(static_cast<std::int64_t>(config_.adapters.size()));
    Worker::Parts parts;
    parts.scheduler = scheduler_config(config_, shape, models.size(), workers_.size());
    parts.model = std::move(model);
    if (!drafts.empty()) {
      parts.draft = std::move(drafts[workers_.size()]);
      parts.scheduler.speculation.draft_model = true;
    } else if (const Heads* heads = parts.model->heads()) {
      SpeculationConfig& speculation = parts.scheduler.speculation;
      speculation.draft_model = speculation.heads = true;
      speculation.draft_tokens_max = std::min(speculation.draft_tokens_max, heads->draft_tokens());
    }
    speculation_ = parts.scheduler.speculation;
    if (config_.tap) parts.tap = config_.tap(parts.scheduler, workers_.size());
    parts.scheduler.tap = parts.tap.get();
    if (config_.holdings) parts.holdings = config_.holdings();
    parts.scheduler.reuse.holdings = parts.holdings.get();
    if (parts.scheduler.reuse.disk) parts.scheduler.reuse.disk->holdings = parts.holdings.get();
    parts.synthetic_acceptance = config_.synthetic_acceptance;
    parts.tokenizer = tokenizer;
    parts.disk = config_.disk;
    parts.found = found;
    parts.exchange = exchange_.get();
    parts.encodings = config_.encodings;
    parts.sleep_after = config_.sleep_after;
    // Each request in flight posts at most one submit and one cancel; the rest is for late cancels.
    parts.inbox_max = 2 * in_flight_max_ + 16;
    parts.number = workers_.size();
    SlotBoard& slots = slots_.emplace_back(shape.slots);
    workers_.push_back(
        std::make_unique<Worker>(std::move(parts), clock, outbox_, loads_.emplace_back(), slots, metrics));
  }
  if (exchange_) exchange_->start();
}

DispatcherConfig Engine::dispatcher_config() const {
  DispatcherConfig out;
  out.placement.workers = workers_.size();
  out.placement.slots = shape_.slots / static_cast<std::int32_t>(workers_.size());
  out.placement.shared_by_tenants = config_.reuse.shared_by_tenants;
  out.placement.pins_max = config_.pins_max;
  out.placement.sent.cut_anywhere = shape_.cuts_snapshots;
  if (config_.reuse.cache.bytes == 0) out.placement.sent.entries = 0;  // nothing is kept, so nothing is to be found
  out.stuck_after = config_.stuck_after;
  out.inbox_max = 2 * in_flight_max_ + 16;
  return out;
}

Engine::~Engine() {
  drain();
  dispatcher_.reset();
  // All at once, so that it is one step for all of them. They write to disk what is to be kept while the exchange,
  // which tells them things as long as it lives, waits for the store.
  for (const auto& worker : workers_) worker->stop();
  if (exchange_) exchange_->stop();
  workers_.clear();
}

void Engine::keep_until(TimePoint time) {
  for (const auto& worker : workers_) worker->keep_until(time);
}

Result<void> Engine::submit(RequestPtr request, Entry entry) {
  if (!shape_.generates) {
    return invalid_field("model",
                         "the model of this server is made for embeddings and does not generate text; use "
                         "/v1/embeddings or /v1/rerank");
  }
  const auto whole = static_cast<std::int64_t>(request->prompt.size()) + request->max_tokens;
  const std::int64_t cells = request->shift_at > 0 ? request->shift_at : whole;
  if (cells > shape_.cells_per_slot || (request->shift_at > 0 && !shape_.shifts)) {
    return Error{ErrorCode::context_too_long, "the request was made for a larger context than this engine has", ""};
  }
  if (draining() && entry == Entry::fresh) {
    return Error{ErrorCode::unavailable, "the server is shutting down; retry elsewhere or later", ""};
  }
  const bool room = in_flight_.fetch_add(1, std::memory_order_relaxed) < in_flight_max_;
  const bool posted = room && (dispatcher_ ? dispatcher_->submit(std::move(request))
                                           : workers_.front()->post(SubmitCommand{std::move(request)}));
  if (!posted) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    door_metrics_.requests_refused.add();
    return Error{ErrorCode::overloaded, "too many requests are waiting; retry later", ""};
  }
  return {};
}

void Engine::cancel(RequestId id) {
  const bool posted = dispatcher_ ? dispatcher_->cancel(id) : workers_.front()->cancel(id);
  if (!posted) log_warning("a cancel was lost: the inbox is full", {{"request", id.value}});
}

void Engine::forget(const Tenant& tenant, std::function<void(Result<std::size_t>)> then) {
  const auto forgetting = std::make_shared<Forgetting>(workers_.size(), std::move(then));
  for (const auto& worker : workers_) {
    std::vector<Command> one;
    one.emplace_back(ForgetCommand{tenant, forgetting});
    worker->post_all(one);  // never refused: a client waits for it
  }
}

Result<std::size_t> Engine::forget(const Tenant& tenant) {
  struct Answer {
    Result<std::size_t> copies = std::size_t{0};
    std::atomic<bool> told{false};
  };
  const auto answer = std::make_shared<Answer>();
  forget(tenant, [answer](Result<std::size_t> copies) {
    answer->copies = std::move(copies);
    answer->told.store(true);
    answer->told.notify_all();
  });
  answer->told.wait(false);
  return answer->copies;
}

SlotCopy Engine::copy_of_slot(SlotId slot, const Tenant& tenant) {
  std::vector<std::shared_ptr<SlotAnswer>> answers;
  for (const auto& worker : workers_) {
    std::vector<Command> one;
    one.emplace_back(CopySlotCommand{slot.value, tenant, answers.emplace_back(std::make_shared<SlotAnswer>())});
    worker->post_all(one);  // never refused: a caller waits for it
  }
  SlotCopy newest;
  for (const auto& answer : answers) {
    answer->done.wait(false);
    if (answer->copy.order > newest.order) newest = std::move(answer->copy);
  }
  return newest;
}

bool Engine::adopt_slot(SlotId slot, const Tenant& tenant, SlotCopy copy) {
  const auto place = static_cast<std::size_t>(slot.value / slots_.front().slots());
  const std::size_t worker = place < workers_.size() ? place : 0;
  copy.order = next_id().value;
  const PrefixKey key{config_.reuse.shared_by_tenants ? 0 : tenant.id, copy.adapters};
  std::vector<Token> tokens;
  if (dispatcher_) tokens = copy.tokens;
  auto answer = std::make_shared<SlotAnswer>();
  std::vector<Command> one;
  one.emplace_back(AdoptSlotCommand{slot.value, tenant, std::move(copy), answer});
  workers_[worker]->post_all(one);
  answer->done.wait(false);
  if (answer->kept && dispatcher_) dispatcher_->brought(worker, key, std::move(tokens));
  return answer->kept;
}

bool Engine::sleeping() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->asleep(); });
}

void Engine::rest() { tell_all({true}); }

void Engine::wake() { tell_all({false}); }

void Engine::tell_all(RestCommand command) {
  for (const auto& worker : workers_) {
    std::vector<Command> one;
    one.emplace_back(command);
    worker->post_all(one);
  }
}

SlotUse Engine::slot(SlotId slot) const {
  const std::int32_t each = slots_.front().slots();
  return slots_[static_cast<std::size_t>(slot.value / each)].read(SlotId{slot.value % each});
}

void Engine::unpin(std::uint64_t pin) {
  if (dispatcher_) dispatcher_->unpin(pin);
}

std::optional<std::size_t> Engine::stuck_worker(TimePoint now) const {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i]->alive(now, config_.stuck_after)) return i;
  }
  return std::nullopt;
}

std::optional<std::vector<RequestId>> Engine::requests_of(std::size_t worker) {
  if (!dispatcher_) return std::nullopt;
  return dispatcher_->requests_of(worker);
}

void Engine::take_events(std::vector<Event>& events) {
  outbox_.drain(events);
  std::size_t finished = 0;
  std::vector<RequestId> ended;
  for (const Event& event : events) {
    if (event.kind != Event::Kind::finished) continue;
    ++finished;
    if (dispatcher_) ended.push_back(event.request);
  }
  if (finished == 0) return;
  // Before others may come in their place, so that the dispatcher never remembers more than are in flight.
  if (dispatcher_) dispatcher_->ended(std::move(ended));
  in_flight_.fetch_sub(finished, std::memory_order_relaxed);
}

Load Engine::load() const {
  if (loads_.size() == 1) return loads_.front().read();
  LoadSum sum;
  for (const LoadBoard& load : loads_) sum.add(load.read());
  return sum.all();
}

std::int64_t Engine::cells_used() const {
  std::int64_t sum = 0;
  for (const EngineMetrics& metrics : metrics_) sum += metrics.kv_cells_used.value();
  return sum;
}

std::uint64_t Engine::count(const Counter EngineMetrics::*which) const {
  std::uint64_t sum = 0;
  for (const EngineMetrics& metrics : metrics_) sum += (metrics.*which).value();
  return sum;
}

void Engine::add_metrics_to(MetricsPage& page, const std::string& labels) const {
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    std::string all = labels;
    if (metrics_.size() > 1 && metrics_.size() <= kWorkersShown) {
      all += (all.empty() ? "" : ",") + metric_label("worker", std::to_string(i));
    }
    page.label_with(std::move(all));
    metrics_[i].each_worker.add_to(page);
  }
  page.label_with(labels);
  for (const EngineMetrics& metrics : metrics_) metrics.add_shared_to(page);
  if (config_.disk) {
    for (const EngineMetrics& metrics : metrics_) metrics.of_disk.add_to(page);
  }
  if (exchange_) exchange_->metrics().add_to(page);
  if (config_.encodings) config_.encodings->metrics().add_to(page);
  if (shape_.reads_media) {
    for (const EngineMetrics& metrics : metrics_) metrics.of_media.add_to(page);
  }
  door_metrics_.add_to(page);
  if (dispatcher_) dispatch_metrics_.add_to(page);
  page.label_with({});
}

void Engine::add_compat_metrics_to(MetricsPage& page, const std::string& model_name) const {
  add_vllm_metrics(page, metrics_, model_name, shape_.cells);
  add_llama_server_metrics(page, metrics_);
}

void Engine::name_adapter(std::int32_t place, const std::string& name) {
  for (EngineMetrics& metrics : metrics_) metrics.name_adapter(static_cast<std::size_t>(place), name);
  metrics_.front().adapters.set(static_cast<std::int64_t>(metrics_.front().named_adapters()));
}

void Engine::add_adapters_to(MetricsPage& page, const std::string& model_name) const {
  for (const EngineMetrics& metrics : metrics_) metrics.of_adapters.add_to(page);
  add_vllm_adapters(page, metrics_, model_name);
}

void Engine::add_adapter_to(MetricsPage& page, std::int32_t place) const {
  for (const EngineMetrics& metrics : metrics_) {
    const EngineMetrics::AdapterSteps& steps = metrics.adapter_steps.at(static_cast<std::size_t>(place) + 1);
    EngineMetrics::add_adapter_row(page, steps);
  }
}

}  // namespace chasqui
