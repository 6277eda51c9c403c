// Which models are loaded, and which version of each. Loads those of --models-dir and --models-preset when a request
// asks for one, and lets the one that was not used for the longest time go where there would be too many. What was
// loaded once is not made again while its file stays the same: unloaded, its workers sleep (docs/sleep.md), so that
// sessions, tokenizer and prefix cache stay and a late request wakes it, whatever is decided here. When the file has
// changed, another version replaces it (app/model_keeper_swap.cpp). Owned by Server; loop thread only, but for one
// thread that loads and one that frees.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/core/model_table.h"
#include "app/config.h"
#include "app/model_parts.h"
#include "app/model_stay.h"
#include "app/rest_order.h"
#include "base/file_stamp.h"
#include "base/flag.h"
#include "base/metric_set.h"
#include "net/event_loop.h"
#include "net/offload.h"

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

struct SwapMetrics : MetricSet {
  Counter swaps{*this, {"chasqui_model_swaps_total", "Models that another version of their file has replaced."}};
  Counter failures{*this,
                   {"chasqui_model_swap_failures_total", "Versions that could not replace the one that serves."}};
  Gauge leaving{*this, {"chasqui_model_versions_leaving", "Versions that were replaced, and still finish requests."}};
};

// Makes what serves a model of its parts, and gives it up. Of Server; called on the loop's thread.
class ModelHosting {
 public:
  // Any thread: its workers begin; `before`: null where it is the first.
  virtual void begin(ModelParts& parts, std::size_t number, const Predecessor* before) = 0;
  // REQUIRES: they have
  virtual ServedModel& host(ModelParts parts, ServedModel* before) = 0;
  virtual Predecessor predecessor(const ServedModel& model) const = 0;
  // What takes long to destroy, for another thread. REQUIRES: nothing refers to the model any more
  virtual std::shared_ptr<const void> release(const ServedModel& model) = 0;

 protected:
  ~ModelHosting() = default;
};

struct KeeperLimits {
  std::size_t most = 0;      // loaded at once, of those on demand; 0: no limit
  std::uint64_t memory = 0;  // bytes that those which are loaded may need
  bool autoload = true;
  bool on_demand = false;  // there are such
};

class ModelKeeper final : public ModelLoader {
 public:
  // All outlive it.
  ModelKeeper(net::EventLoop& loop, net::OffloadPool& offload, ModelTable& table, const KeeperLimits& limits,
              ModelHosting& hosting);
  // Waits for what is being loaded, which ends as soon as it can. After the loop.
  ~ModelKeeper() override;
  ModelKeeper(const ModelKeeper&) = delete;
  ModelKeeper& operator=(const ModelKeeper&) = delete;

  // In the order of the table. The configuration outlives it; its parts are taken where it was loaded already.
  void add(ListedModel&& listed);

  ModelStatus status(const ModelEntry& entry) const override;
  net::Awaitable<Result<ServedModel*>> ready(const ModelEntry& entry, ModelWait wait) override;
  bool may_wait() const override { return limits_.on_demand || holding_ > 0; }
  net::Awaitable<Result<void>> load(const ModelEntry& entry, std::string path) override;
  Result<void> unload(const ModelEntry& entry) override;
  bool replacing(const ModelEntry& entry) const override;

  void add_to(MetricsPage& page) const;

 private:
  static constexpr Duration kLookEvery = milliseconds(10);
  static constexpr Duration kRetryFirst = seconds(5), kRetryMost = seconds(60);

  // A version that is to replace the one there is.
  struct Swap {
    enum class Stage { asked, looking, looked, draining, loading, over };
    Stage stage = Stage::asked;
    std::shared_ptr<const ServeConfig> config;
    std::uint64_t needs = 0;
    std::uint64_t bytes = 0;  // of the file
    std::uint64_t needs_before = 0;
    RestOrder rest{};        // of the version before, which is to go
    bool holds = false;      // new requests wait for it, since there is no room for both
    Result<void> outcome{};  // when it is over
  };

  struct Kept {
    const ModelEntry& entry;
    const ServeConfig* config;
    LoadOptions how;
    std::size_t number;
    std::shared_ptr<const ServeConfig> owned_config{};  // `config`, where a load named another file
    std::optional<FileStamp> stamp{};                   // of the file that it was loaded from
    TimePoint looked_at{};                              // … whether it is another one now
    bool another = false;
    std::shared_ptr<Swap> swap{};    // null: it is not being replaced
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

  // A version that was replaced, until nothing refers to it.
  struct Leaving {
    ServedModel* served;
    Kept* of;
    std::uint64_t needs;
    std::optional<std::uint64_t> last_job{};  // of the offload pool, when it had nothing to do any more
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
  bool busy() const { return loading_ != nullptr || swapping_ != nullptr; }
  void load_in_thread(Kept& one, std::shared_ptr<const ServeConfig> config,
                      void (ModelKeeper::*then)(Kept&, Result<ModelParts>));
  Result<ServedModel*> try_now(Kept& one, bool& wait);
  Result<void> order(Kept& one, std::string path);

  // As clients may read it: without the folder of the file.
  static std::string shown(std::string reason, const ServeConfig& config);
  static bool file_changed(const Kept& one);
  static std::vector<AdapterFile> adapters_of(const ServedModel& served);
  bool has_another_file(Kept& one);
  Result<void> begin_swap(Kept& one, std::string path);
  void follow_swap(Kept& one);
  void look(Kept& one);
  void looked(Kept& one, const Result<std::uint64_t>& needs, std::uint64_t bytes);
  void choose_room(Kept& one);
  void drain(Kept& one);
  void load_next(Kept& one);
  void loaded_next(Kept& one, Result<ModelParts> parts);
  void end_swap(Kept& one, Result<void> outcome);
  void go_back(Kept& one, std::uint64_t needs, const std::string& reason);
  void replace(Kept& one, ModelParts parts);
  void follow_leaving();
  bool free_of_use(Leaving& one) const;
  void free_in_thread(std::shared_ptr<const void> computing, const std::string& name);
  std::uint64_t leaving_needs() const;

  net::EventLoop& loop_;
  ModelTable& table_;
  net::OffloadPool& offload_;
  const KeeperLimits limits_;
  ModelHosting& hosting_;
  KeeperMetrics metrics_;
  SwapMetrics swap_metrics_;
  std::deque<Kept> kept_;
  net::Timer timer_;  // while there are orders, models that go, or such as will

  Kept* loading_ = nullptr;   // one at a time
  Kept* swapping_ = nullptr;  // … and this is looked at, or loaded, to replace what there is
  std::size_t holding_ = 0;   // swaps whose requests wait
  std::vector<Leaving> leaving_;
  TimePoint began_{};
  Flag stop_;
  std::thread thread_;
  std::thread freeing_;
  bool frees_ = false;
};

}  // namespace chasqui
