#include "app/adapter_keeper.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/core/served_model.h"
#include "base/log.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

constexpr Duration kLookEvery = milliseconds(10);
constexpr Duration kLookAtEnds = milliseconds(100);
constexpr int kTries = 3;  // where the model falls asleep before the file was read

Error being_replaced(const ModelEntry& entry) {
  return {ErrorCode::conflict,
          "the model " + entry.name + " is being loaded or replaced; its adapters can be changed when that is over",
          "model"};
}

// The file may be whatever the path names; what is said of it is about the field that named it.
Error of_path(Error error) {
  if (error.field == "lora") error.field = "lora_path";
  return error;
}

}  // namespace

AdapterKeeper::AdapterKeeper(net::EventLoop& loop, ModelTable& table, const ModelLoader& models,
                             AdapterHosting& hosting)
    : loop_(loop), table_(table), models_(models), hosting_(hosting), timer_(loop.executor()) {}

AdapterKeeper::~AdapterKeeper() = default;

net::OffloadPool& AdapterKeeper::pool() {
  if (!pool_) {
    net::OffloadOptions options;
    options.threads = 1;
    options.name = "adapters";
    pool_ = std::make_unique<net::OffloadPool>(loop_, options);
  }
  return *pool_;
}

Result<void> AdapterKeeper::may_load(const ModelEntry& entry, const AdapterOrder& order) const {
  if (models_.replacing(entry)) return being_replaced(entry);
  if (order.name == "none" || order.name == "several") {
    return invalid_field("lora_name", "lora_name must be another one: none and several are words of the metrics");
  }
  const bool there = std::ranges::find(entry.adapters, order.name) != entry.adapters.end();
  if (there && order.in_place) return {};
  if (there) {
    return invalid_field(
        "lora_name", "The LoRA adapter '" + order.name + "' has already been loaded; load_inplace: true replaces it.");
  }
  const ModelEntry* const other = table_.named(order.name);
  if (other == nullptr) return {};
  return invalid_field("lora_name", "lora_name must be a new name: " + order.name + " is what the model " +
                                        other->name + " or an adapter of it is called");
}

net::Awaitable<Result<void>> AdapterKeeper::load(const ModelEntry& entry, AdapterOrder order, ModelWait wait) {
  for (int tries = 1;; ++tries) {
    if (auto may = may_load(entry, order); !may) co_return may.error();
    ModelWait once = wait;
    const Result<ServedModel*> ready = co_await table_.ready(entry, std::move(once));
    if (!ready) co_return ready.error();
    ServedModel& served = **ready;
    const ModelUse use(served);
    Result<void> awake = co_await wake(served);
    if (!awake) co_return awake.error();
    const AdapterFile file{order.path, order.name, 1, true};
    auto work = [load = served.model.load_adapter, file] { return load(file); };
    const TimePoint began = loop_.now();
    Result<AdapterInfo> adapter = co_await pool().run(std::move(work));
    if (!adapter && adapter.error().code == ErrorCode::unavailable && tries < kTries) continue;
    if (!adapter) {
      log_error("an adapter cannot be loaded",
                {{"model", entry.name}, {"adapter", order.name}, {"reason", adapter.error().message}});
      co_return of_path(adapter.error());
    }
    const double took_ms = to_milliseconds(loop_.now() - began);
    Result<void> taken = take(entry, served, order, std::move(*adapter));
    if (taken) {
      log_info("an adapter is loaded",
               {{"model", entry.name}, {"adapter", order.name}, {"path", order.path}, {"took_ms", took_ms}});
    }
    co_return taken;
  }
}

// Its weights have to be in memory. What waits for nothing else than this puts it to sleep again.
net::Awaitable<Result<void>> AdapterKeeper::wake(ServedModel& served) {
  Engine& engine = served.engine;
  if (!engine.sleeping()) co_return Result<void>();
  const std::uint64_t failed = engine.count(&EngineMetrics::failed_wakes);
  engine.wake();
  net::Timer timer(loop_.executor());
  while (engine.sleeping()) {
    if (engine.draining()) co_return Error{ErrorCode::unavailable, "the server is shutting down", ""};
    if (engine.count(&EngineMetrics::failed_wakes) != failed) {
      co_return Error{ErrorCode::model_failure, "the model cannot be loaded again; the log says why", "model"};
    }
    timer.expires_after(kLookEvery);
    [[maybe_unused]] const auto [error] = co_await timer.async_wait(net::kAwait);
  }
  co_return Result<void>();
}

// While the file was read, the model may have been replaced, or another order may have taken the name.
Result<void> AdapterKeeper::take(const ModelEntry& entry, ServedModel& served, const AdapterOrder& order,
                                 AdapterInfo adapter) {
  Result<void> may = may_load(entry, order);
  if (may && entry.served != &served) may = being_replaced(entry);
  if (!may) {
    loop_.spawn(free_place(served.model.free_adapter, adapter.place), "adapter");
    return may;
  }
  const std::int32_t place = adapter.place;
  served.adapters.add(std::move(adapter));
  table_.follow_adapters(served);
  hosting_.adapter_came(served, place, order.name);
  follow_ends();
  return {};
}

Result<void> AdapterKeeper::unload(const ModelEntry& entry, const std::string& name) {
  if (models_.replacing(entry)) return being_replaced(entry);
  if (entry.served == nullptr) {
    return Error{ErrorCode::conflict, "the model " + entry.name + " has not been loaded yet", "model"};
  }
  ServedModel& served = *entry.served;
  if (!served.adapters.remove(name)) {
    const AdapterListPtr list = served.adapters.list();
    return Error{ErrorCode::not_found,
                 "The LoRA adapter '" + name + "' cannot be found; the model " + entry.name + " has " +
                     (list->empty() ? "none" : list->names()) + ".",
                 "lora_name"};
  }
  table_.follow_adapters(served);
  log_info("an adapter is unloaded", {{"model", entry.name}, {"adapter", name}});
  follow_ends();
  return {};
}

// Those of versions that were replaced go with them.
void AdapterKeeper::follow_ends() {
  bool more = false;
  for (ServedModel* const served : table_.all_versions()) {
    for (const std::int32_t place : served->adapters.take_ended()) {
      hosting_.adapter_went(*served, place);
      loop_.spawn(free_place(served->model.free_adapter, place), "adapter");
    }
    more = more || !served->adapters.leaving().empty();
  }
  if (!more) return;
  timer_.expires_after(kLookAtEnds);
  timer_.async_wait([this](net::SystemError error) {
    if (!error) follow_ends();
  });
}

net::Awaitable<void> AdapterKeeper::free_place(std::function<void(std::int32_t)> free, std::int32_t place) {
  auto work = [free = std::move(free), place] { free(place); };
  const Result<void> done = co_await pool().run(std::move(work));
  if (!done) log_warning("the memory of an adapter was not freed", {{"reason", done.error().message}});
}

}  // namespace chasqui
