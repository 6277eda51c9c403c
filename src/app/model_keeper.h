// Loads the models of --models-dir and --models-preset when a request asks for one, and lets the one that was not used
// for the longest time go where there would be too many. What was loaded once is never made again: unloaded, its
// workers sleep (docs/sleep.md), so that sessions, tokenizer and prefix cache stay and a late request wakes it,
// whatever is decided here. Owned by Server; loop thread only, but for one thread that loads.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "api/core/model_table.h"
#include "app/config.h"
#include "app/model_parts.h"
#include "app/model_stay.h"
#include "base/flag.h"
#include "base/metric_set.h"
#include "net/event_loop.h"

namespace chasqui {

struct KeeperMetrics : MetricSet {
  Gauge waiting{*this, {"chasqui_model_waiting_requests", "Requests that wait until their model is loaded."}};
  Gauge memory{*this,
               {"chasqui_models_memory_bytes",
                "What the models that are loaded need, as predicted, without their prefix caches."}};
  Gauge memory_most{*this, {"chasqui_models_memory_limit_bytes", "What they may need together: --models-memory."}};
  Counter wait_timeouts{*this,
                        {"chasqui_model_wait_timeouts_total", "Requests that waited for their model for too long."}};
  FloatGauge progress{*this,
                      {"chasqui_model_load_progress", "Of the model that is being loaded, or was at last: 0 to 1."}};
  Counter loads{*this, {"chasqui_model_loads_total", "Models loaded after the start, also again."}};
  Counter failures{*this, {"chasqui_model_load_failures_total", "Loads that failed."}};
  Counter unloads{*this, {"chasqui_model_unloads_total", "Models unloaded, for others or because they were told to."}};
  Histogram load_seconds{*this, {"chasqui_model_load_seconds", "What loading a model for the first time took."}};
  Histogram trial_seconds{*this,
                          {"chasqui_model_trial_seconds", "… and what of it was trying it in a process of its own."}};
};

class ModelKeeper final : public ModelLoader {
 public:
  // Makes what serves a model of its parts. Called on the loop's thread.
  using Host = std::function<ServedModel&(ModelParts parts, std::size_t number)>;

  // `most`: loaded at once; 0: no limit. `memory`: bytes that those which are loaded may need.
  ModelKeeper(net::EventLoop& loop, ModelTable& table, std::size_t most, std::uint64_t memory, bool autoload,
              Host host);
  // Waits for what is being loaded, which ends as soon as it can. After the loop.
  ~ModelKeeper() override;
  ModelKeeper(const ModelKeeper&) = delete;
  ModelKeeper& operator=(const ModelKeeper&) = delete;

  // In the order of the table. The configuration outlives it; its parts are taken where it was loaded already.
  void add(ListedModel&& listed);

  ModelStatus status(const ModelEntry& entry) const override;
  net::Awaitable<Result<ServedModel*>> ready(const ModelEntry& entry, ModelWait wait) override;
  Result<void> load(const ModelEntry& entry) override;
  Result<void> unload(const ModelEntry& entry) override;

  const KeeperMetrics& metrics() const { return metrics_; }

 private:
  struct Kept {
    const ModelEntry& entry;
    const ServeConfig& config;
    LoadOptions how;
    std::size_t number;
    bool resting = false;            // told to sleep, and does not yet
    std::uint64_t wakes = 0;         // before that
    bool waking = false;             // told to wake, and does not yet
    bool ordered = false;            // to be loaded, whatever autoload says
    std::uint64_t failed_wakes = 0;  // before that
    std::string failure{};           // why it could not be loaded
    TimePoint retry_at{};            // … and when a request may try again
    Duration retry_after{};
    TimePoint used_at{};
    ModelStay stay{};
    TimePoint loaded_at{};
    Duration loading_took{};
    std::size_t waiting = 0;  // requests
    TimePoint waits_since{};  // the first of them
  };

  Kept& kept(const ModelEntry& entry);
  const Kept& kept(const ModelEntry& entry) const { return const_cast<ModelKeeper*>(this)->kept(entry); }
  ModelStatus state_of(const Kept& one) const;
  void made(Kept& one, ModelParts parts);
  bool loaded(const Kept& one) const;
  bool idle(const Kept& one) const;
  bool takes_room(const Kept& one) const;
  bool waits(const Kept& one) const;
  bool has_room(const Kept& wanted) const;
  Result<void> check_room(const Kept& wanted) const;
  void count_memory();
  bool leaves(const Kept& one) const;
  void settle(Kept& one);
  void wake(Kept& one);
  void rest(Kept& one);
  void keep(Kept& one, Duration time);
  void follow_orders();
  void follow_later(Duration pause);
  bool make_room(Kept& wanted);
  void free_room(Kept& wanted);
  void start(Kept& one);
  void finish(Kept& one, Result<ModelParts> parts);
  Result<ServedModel*> try_now(Kept& one, bool& wait);

  net::EventLoop& loop_;
  ModelTable& table_;
  const std::size_t most_;
  const std::uint64_t memory_;
  const bool autoload_;
  const Host host_;
  KeeperMetrics metrics_;
  std::deque<Kept> kept_;
  net::Timer timer_;  // while there are orders, models that go, or such as will

  Kept* loading_ = nullptr;  // one at a time
  TimePoint began_{};
  Flag stop_;
  std::thread thread_;
};

}  // namespace chasqui
