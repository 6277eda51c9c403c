#include "app/model_keeper.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "api/core/served_model.h"
#include "app/settings.h"
#include "app/waiting_count.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "engine/admission.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

constexpr Duration kLookAtStays = milliseconds(200);
constexpr std::size_t kWaitingMax = kSizeLimit<"queue_requests">;  // of one model

}  // namespace

ModelKeeper::ModelKeeper(net::EventLoop& loop, net::OffloadPool& offload, ModelTable& table, const KeeperLimits& limits,
                         ModelHosting& hosting)
    : loop_(loop), table_(table), offload_(offload), limits_(limits), hosting_(hosting), timer_(loop.executor()) {
  metrics_.memory_most.set(static_cast<std::int64_t>(limits.memory));
}

ModelKeeper::~ModelKeeper() {
  stop_.raise();
  if (thread_.joinable()) thread_.join();
  if (freeing_.joinable()) freeing_.join();
}

void ModelKeeper::add_to(MetricsPage& page) const {
  if (limits_.on_demand) metrics_.add_to(page);
  swap_metrics_.add_to(page);
}

void ModelKeeper::add(ListedModel&& listed) {
  const ServeConfig& config = listed.config;
  ModelEntry entry;
  entry.needs = listed.needs;
  entry.aliases = names_of_model(config);
  if (entry.aliases.empty()) entry.aliases.push_back(listed.parts->model.info.name);  // it is the only one
  entry.name = entry.aliases.front();
  entry.tags = names_in(config.tags);
  std::error_code unknown;
  const std::uintmax_t bytes = std::filesystem::file_size(config.model_path, unknown);
  entry.bytes = unknown ? 0 : bytes;
  for (const AdapterFile& adapter : listed.how.weights.adapters) entry.adapters.push_back(adapter.name);
  const ModelEntry& added = table_.add(std::move(entry), *this);
  Kept& one = kept_.emplace_back(Kept{added, &config, std::move(listed.how), kept_.size()});
  if (listed.parts) {
    hosting_.begin(*listed.parts, one.number, nullptr);
    made(one, std::move(*listed.parts));
  } else if (!listed.failure.empty()) {
    one.failure = shown(listed.failure, config);
    one.retry_after = kRetryFirst;
    one.retry_at = loop_.now() + one.retry_after;
  }
}

void ModelKeeper::made(Kept& one, ModelParts parts) {
  one.stamp = parts.stamp;
  ServedModel& served = hosting_.host(std::move(parts), nullptr);
  if (one.config->on_demand) {
    served.keep_loaded = [this, &one](Duration time) { keep(one, time); };
  }
  table_.made(one.entry, served);
  one.used_at = one.loaded_at = loop_.now();
  count_memory();
}

ModelKeeper::Kept& ModelKeeper::kept(const ModelEntry& entry) {
  return *std::ranges::find_if(kept_, [&entry](const Kept& one) { return &one.entry == &entry; });
}

bool ModelKeeper::loaded(const Kept& one) const {
  return one.entry.served != nullptr && !one.entry.served->engine.sleeping();
}

// Nothing of it is computed, and no request is on its way to it.
bool ModelKeeper::idle(const Kept& one) const {
  return one.config->on_demand && loaded(one) && !one.resting && !one.swap && one.waiting == 0 &&
         one.entry.served->engine.in_flight() == 0 && one.entry.served->admission.in_flight() == 0;
}

// A request that was on its way when it was told so may have kept it, or waked it again.
bool ModelKeeper::leaves(const Kept& one) const {
  if (!one.resting) return false;
  Engine& engine = one.entry.served->engine;
  return !engine.sleeping() && engine.count(&EngineMetrics::wakes) == one.wakes;
}

// What has become of what it was told.
void ModelKeeper::settle(Kept& one) {
  if (one.entry.served == nullptr) return;
  Engine& engine = one.entry.served->engine;
  one.resting = leaves(one);
  if (!one.waking) return;
  if (!engine.sleeping()) {
    one.waking = false;
  } else if (engine.count(&EngineMetrics::failed_wakes) != one.failed_wakes) {
    one.waking = false;
    metrics_.failures.add();
    one.failure = "it cannot be loaded again; the log says why";
  }
}

ModelStatus ModelKeeper::state_of(const Kept& one) const {
  const bool next_loads = one.swap && one.swap->holds && one.swap->stage == Swap::Stage::loading;
  if (loading_ == &one || next_loads) return {ModelState::loading, metrics_.progress.value()};
  const ServedModel* const served = one.entry.served;
  if (!limits_.on_demand && !one.swap && one.failure.empty()) return {ModelState::ready};
  if (one.swap && one.swap->stage == Swap::Stage::draining && loaded(one)) return {ModelState::draining};
  if (served != nullptr && !served->engine.sleeping()) {
    return {leaves(one) ? ModelState::draining : ModelState::ready};
  }
  if (served != nullptr && (one.waking || served->engine.in_flight() > 0)) return {ModelState::loading, 0};
  if (one.failure.empty()) return {ModelState::unloaded, 0};
  return {ModelState::failed, 0, one.failure};
}

ModelStatus ModelKeeper::status(const ModelEntry& entry) const {
  const Kept& one = kept(entry);
  ModelStatus out = state_of(one);
  out.on_demand = one.config->on_demand;
  if (out.state == ModelState::ready) out.stays = one.stay.left(loop_.now());
  return out;
}

bool ModelKeeper::takes_room(const Kept& one) const { return loaded(one) || one.waking || loading_ == &one; }

// Requests or an order wait for it.
bool ModelKeeper::waits(const Kept& one) const { return (one.waiting > 0 || one.ordered) && !takes_room(one); }

void ModelKeeper::count_memory() {
  std::uint64_t used = 0;
  for (const Kept& one : kept_) {
    used += takes_room(one) ? one.entry.needs : 0;
    if (one.swap && one.swap->stage == Swap::Stage::loading) used += one.swap->needs;
  }
  used += leaving_needs();
  metrics_.memory.set(static_cast<std::int64_t>(used));
}

void ModelKeeper::rest(Kept& one) {
  one.resting = true;
  one.ordered = false;  // it was loaded, and is not to be loaded again for that order
  one.wakes = one.entry.served->engine.count(&EngineMetrics::wakes);
  metrics_.unloads.add();
  one.entry.served->engine.rest();
  follow_later(kLookEvery);
}

void ModelKeeper::keep(Kept& one, Duration time) {
  settle(one);
  const bool at_once = time == Duration::zero();  // which is no rule for later
  one.stay.keep(at_once ? seconds(-1) : time, loop_.now());
  if (at_once && loaded(one) && !one.resting) rest(one);
  follow_orders();
}

// The model, or an error; otherwise `wait` is set.
Result<ServedModel*> ModelKeeper::try_now(Kept& one, bool& wait) {
  const bool ordered = one.ordered;
  wait = false;
  settle(one);
  const TimePoint now = loop_.now();
  // Of a node that an operator has drained models can be loaded, so that it opens with them.
  const ServedModel& first = table_.first();
  if (first.admission.draining() && (!ordered || first.engine.draining())) {
    return Error{ErrorCode::unavailable, "the server is shutting down or drained; retry elsewhere, or here", ""};
  }
  if (one.swap && one.swap->holds) {
    wait = true;
    return one.entry.served;
  }
  if (loaded(one) && !one.resting) {
    one.used_at = now;
    return one.entry.served;
  }
  if (!limits_.autoload && !ordered && !one.waking && loading_ != &one) {
    return Error{ErrorCode::unavailable, "the model " + one.entry.name + " is not loaded: POST /models/load loads it",
                 "model"};
  }
  if (auto fits = check_room(one); !fits && !one.waking) return fits.error();
  const bool another = one.entry.served != nullptr && !one.resting && !one.waking && has_another_file(one);
  if ((one.entry.served == nullptr || another) && loading_ != &one && !one.failure.empty() && now < one.retry_at) {
    Error error{ErrorCode::model_failure, "the model " + one.entry.name + " cannot be loaded: " + one.failure, "model"};
    error.retry_after = one.retry_at - now;
    return error;
  }
  wait = true;
  if (one.entry.served != nullptr && !another) {
    if (one.resting || (!one.waking && !make_room(one))) return one.entry.served;
    wait = false;
    one.used_at = now;
    if (!one.waking) wake(one);
    return one.entry.served;
  }
  if (loading_ == &one) return one.entry.served;
  if (!busy() && make_room(one)) start(one);
  return one.entry.served;
}

// Requests need not wait for it: they have a line of their own.
void ModelKeeper::wake(Kept& one) {
  Engine& engine = one.entry.served->engine;
  one.waking = true;
  one.failure.clear();
  one.failed_wakes = engine.count(&EngineMetrics::failed_wakes);
  one.loaded_at = loop_.now();
  metrics_.loads.add();
  engine.wake();
  count_memory();
  if (one.stay.ends()) follow_later(kLookEvery);  // its keep_alive holds again
}

net::Awaitable<Result<ServedModel*>> ModelKeeper::ready(const ModelEntry& entry, ModelWait wait) {
  Kept& one = kept(entry);
  bool waits = false;
  Result<ServedModel*> served = try_now(one, waits);
  if (!waits) co_return served;
  if (one.waiting >= kWaitingMax) {
    co_return Error{ErrorCode::overloaded, "too many requests wait for the model " + entry.name, "model"};
  }
  const TimePoint since = loop_.now();
  const Duration patience = one.config->queue_timeout;  // zero: without end
  if (one.waiting == 0) one.waits_since = since;
  const WaitingCount counted(one.waiting, metrics_.waiting);
  net::Timer timer(loop_.executor());
  TimePoint told = since;
  while (waits) {
    timer.expires_after(kLookEvery);
    [[maybe_unused]] const auto [error] = co_await timer.async_wait(net::kAwait);
    bool left = wait.gone && wait.gone();
    if (!left && wait.tell && loop_.now() - told >= wait.tell_every) {
      told = loop_.now();
      left = !co_await wait.tell();
    }
    if (left) co_return Error{ErrorCode::unavailable, "the client has left", ""};
    served = try_now(one, waits);
    if (!waits || patience <= Duration::zero() || loop_.now() - since < patience) continue;
    metrics_.wait_timeouts.add();
    co_return Error{ErrorCode::overloaded,
                    "queue timeout: the model " + entry.name + " was not loaded in time (--queue-timeout); retry",
                    "model"};
  }
  co_return served;
}

net::Awaitable<Result<void>> ModelKeeper::load(const ModelEntry& entry, std::string path) {
  Kept& one = kept(entry);
  if (auto told = order(one, std::move(path)); !told) co_return told;
  const std::shared_ptr<const Swap> swap = one.swap;
  net::Timer timer(loop_.executor());
  while (swap && swap->stage != Swap::Stage::over) {
    // The drain waits for this handler, and the swap for the drain.
    if (table_.first().engine.draining()) co_return Error{ErrorCode::unavailable, "the server is shutting down", ""};
    timer.expires_after(kLookEvery);
    [[maybe_unused]] const auto [error] = co_await timer.async_wait(net::kAwait);
  }
  co_return swap ? swap->outcome : Result<void>();
}

Result<void> ModelKeeper::order(Kept& one, std::string path) {
  settle(one);
  if (loading_ == &one || one.waking || one.swap) {
    return Error{ErrorCode::conflict, "the model " + one.entry.name + " is being loaded", "model"};
  }
  const bool there = loaded(one) && !one.resting;
  if (there || !path.empty()) return begin_swap(one, std::move(path));
  if (auto fits = check_room(one); !fits) return fits;
  one.retry_at = {};
  one.ordered = true;
  follow_orders();
  return {};
}

// … and what goes: it is gone when its workers say so.
void ModelKeeper::follow_orders() {
  const TimePoint now = loop_.now();
  bool soon = false;
  bool later = false;
  for (Kept& one : kept_) {
    settle(one);
    const bool may_end = one.stay.ends() && (one.waking || loaded(one)) && !one.resting;
    if (may_end && !one.waking && one.stay.over(idle(one), now)) rest(one);
    later = later || may_end;
    if (one.ordered) {
      [[maybe_unused]] const Result<ServedModel*> served = try_now(one, one.ordered);
    }
    follow_swap(one);
    soon = soon || one.ordered || one.resting || one.swap;
  }
  follow_leaving();
  soon = soon || !leaving_.empty();
  count_memory();
  if (soon || later) follow_later(soon ? kLookEvery : kLookAtStays);
}

void ModelKeeper::follow_later(Duration pause) {
  timer_.expires_after(pause);
  timer_.async_wait([this](net::SystemError error) {
    if (!error) follow_orders();
  });
}

Result<void> ModelKeeper::unload(const ModelEntry& entry) {
  Kept& one = kept(entry);
  if (!one.config->on_demand) {
    return Error{ErrorCode::not_supported, "the model " + entry.name + " was named with --model and stays loaded",
                 "model"};
  }
  settle(one);
  if (one.swap) return Error{ErrorCode::conflict, "the model " + entry.name + " is being replaced", "model"};
  if (!loaded(one) || one.resting) {
    return Error{ErrorCode::conflict, "the model " + entry.name + " is not loaded", "model"};
  }
  rest(one);
  return {};
}

void ModelKeeper::start(Kept& one) {
  loading_ = &one;
  count_memory();
  began_ = loop_.now();
  log_info("loading a model", {{"model", one.entry.name}});
  load_in_thread(one, one.owned_config, &ModelKeeper::finish);
}

// Beside, or after, the version that is there.
void ModelKeeper::load_in_thread(Kept& one, std::shared_ptr<const ServeConfig> config,
                                 void (ModelKeeper::*then)(Kept&, Result<ModelParts>)) {
  if (thread_.joinable()) thread_.join();  // it has posted what it loaded, and ends
  metrics_.progress.set(0);
  std::optional<Predecessor> before;
  if (one.entry.served != nullptr) {
    before = hosting_.predecessor(*one.entry.served);
    before->frees = loaded(one) ? one.entry.needs : 0;
  }
  LoadOptions with = one.how;
  if (one.entry.served != nullptr) with.weights.adapters = adapters_of(*one.entry.served);
  thread_ = std::thread(
      [this, &one, how = std::move(with), config = std::move(config), before = std::move(before), then]() mutable {
        name_this_thread("load");
        how.weights.progress = [this](double share) {
          metrics_.progress.set(share);
          return !stop_.raised();
        };
        const ServeConfig& said = config ? *config : *one.config;
        const auto parts =
            std::make_shared<Result<ModelParts>>(load_model(said, std::move(how), stop_, before ? &*before : nullptr));
        if (*parts) {
          (*parts)->owned = std::move(config);
          hosting_.begin(**parts, one.number, before ? &*before : nullptr);
        }
        loop_.post([this, &one, parts, then] { (this->*then)(one, std::move(*parts)); });
      });
}

void ModelKeeper::finish(Kept& one, Result<ModelParts> parts) {
  loading_ = nullptr;
  count_memory();
  const TimePoint now = loop_.now();
  one.loading_took = now - began_;
  if (!parts) {
    metrics_.failures.add();
    one.failure = shown(parts.error().message, *one.config);
    one.retry_after = std::clamp(2 * one.retry_after, kRetryFirst, kRetryMost);
    one.retry_at = now + one.retry_after;
    log_error("a model cannot be loaded", {{"model", one.entry.name}, {"reason", parts.error().message}});
    return;
  }
  one.failure.clear();
  one.retry_after = {};
  metrics_.loads.add();
  metrics_.load_seconds.observe(to_seconds(one.loading_took));
  metrics_.trial_seconds.observe(to_seconds(parts->trial));
  const double tried_ms = to_milliseconds(parts->trial);
  if (one.entry.served == nullptr) {
    made(one, std::move(*parts));
  } else {
    table_.set_needs(one.entry, parts->needs, one.entry.bytes);
    replace(one, std::move(*parts));
  }
  log_info("a model is loaded",
           {{"model", one.entry.name}, {"took_ms", to_milliseconds(one.loading_took)}, {"tried_ms", tried_ms}});
}

}  // namespace chasqui
