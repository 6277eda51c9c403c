// Plans, budgets, forecasts and targets on a device as a GPU is one: steps of 15 ms for 128 slots, of which libllama's
// call only launches the work, and a bus that is slow for KV. The scheduler and the runner are those of a worker; time
// is virtual.
#include <map>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "engine/admission.h"
#include "engine/runner.h"
#include "model/sim_device.h"
#include "model/sim_model.h"
#include "sched/scheduler.h"

namespace chasqui {
namespace {

struct Watched {
  RequestPtr request;
  TimePoint first{};
  TimePoint last{};
  Duration longest_gap{};
  TokenCount tokens = 0;
  bool finished = false;
};

class DeviceWorker {
 public:
  static constexpr std::int32_t kSlots = 128;
  static constexpr TokenCount kContext = 8192;

  // `ready`: slots that are copied out before they are needed.
  explicit DeviceWorker(DeviceOptions options, std::size_t cache_bytes = 0, std::int32_t ready = 0)
      : device_(with_time(std::move(options))),
        scheduler_(config(device_.shape(), cache_bytes, ready)),
        runner_(device_, *tokenizer_, clock_) {
    limits_.vocabulary = tokenizer_->vocabulary();
    limits_.context = kContext;
  }

  // The first `shared` tokens are those of all that have the same.
  std::uint64_t ask(TokenCount prompt, std::int64_t tokens, ServiceClass service_class = ServiceClass::standard,
                    TokenCount shared = 0) {
    const std::uint64_t id = ++ids_;
    RequestDraft draft;
    draft.prompt = test_prompt(shared, 1, 200);
    const std::vector<Token> own = test_prompt(prompt - shared, id + 100, 200);
    draft.prompt.insert(draft.prompt.end(), own.begin(), own.end());
    draft.max_tokens = tokens;
    draft.sampling.ignore_eos = true;
    draft.sampling.temperature = 0;
    draft.service_class = service_class;
    Watched& watched = requests_[id];
    watched.request = test_request(id, std::move(draft), limits_, clock_.now());
    scheduler_.add(watched.request);
    return id;
  }

  // False: there was nothing to do.
  bool step() {
    planned_ = clock_.now();
    scheduler_.next_batch(planned_, batch_);
    take_events();
    if (batch_.empty()) return false;
    runner_.run(batch_, result_);
    scheduler_.commit(batch_, result_);
    take_events();
    return true;
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(step());
  }
  void run_to_first_token(std::uint64_t id) {
    while (of(id).tokens == 0) ASSERT_TRUE(step());
  }
  void run_to_end(std::uint64_t id) {
    while (!of(id).finished) ASSERT_TRUE(step());
  }
  // Forgets gaps so far.
  void begin() {
    for (auto& [id, watched] : requests_) watched.longest_gap = {};
  }

  const Watched& of(std::uint64_t id) { return requests_.at(id); }
  const Batch& batch() const { return batch_; }
  const BatchResult& result() const { return result_; }
  const SimDevice& device() const { return device_; }
  Scheduler& scheduler() { return scheduler_; }
  TimePoint now() const { return clock_.now(); }
  bool prefills() const { return batch_.kind == Batch::Kind::prefill; }

 private:
  std::unique_ptr<Model> model() const {
    const ModelConfig shape{.slots = kSlots, .cells = kSlots * kContext, .rows_max = 2048};
    return std::make_unique<SimModel>(tokenizer_, shape, SimOptions{});
  }
  SimDevice with_time(DeviceOptions options) {
    options.spend = [this](Duration time) { clock_.advance(time); };
    return SimDevice(model(), clock_, std::move(options));
  }
  static SchedulerConfig config(const ModelShape& shape, std::size_t cache_bytes, std::int32_t ready) {
    SchedulerConfig config;
    config.kv = {kSlots, kSlots * kContext, kContext, false};
    config.rows_max = 2048;
    config.dense_slots = config.exchanges = true;
    config.reuse.cache.bytes = cache_bytes;
    config.reuse.kv_block = shape.kv_block;
    config.reuse.kv_token_bytes = shape.kv_token_bytes;
    config.reuse.slots_ready = ready;
    return config;
  }

  void take_events() {
    events_.clear();
    scheduler_.take_events(events_);
    for (const Event& event : events_) {
      Watched& watched = requests_.at(event.request.value);
      if (event.tokens > 0) {
        if (watched.tokens == 0) watched.first = now();
        if (watched.tokens > 0) watched.longest_gap = std::max(watched.longest_gap, now() - watched.last);
        watched.last = now();
        watched.tokens += event.tokens;
      }
      if (event.kind != Event::Kind::finished) continue;
      EXPECT_NE(event.reason, FinishReason::error);
      watched.finished = true;
      runner_.close(event.request);
    }
  }

  const std::shared_ptr<const SimTokenizer> tokenizer_ = std::make_shared<const SimTokenizer>();
  ManualClock clock_;
  SimDevice device_;
  Scheduler scheduler_;
  Runner runner_;
  RequestLimits limits_;
  Batch batch_;
  BatchResult result_;
  TimePoint planned_{};
  std::vector<Event> events_;
  std::map<std::uint64_t, Watched> requests_;
  std::uint64_t ids_ = 0;
};

constexpr std::size_t kRoom = std::size_t{1} << 30;

DeviceOptions device(bool synchronises = true) {
  DeviceOptions options;
  options.synchronises = synchronises;
  return options;
}

// Reading costs so much here that a whole micro-batch takes longer than a stream may wait.
DeviceOptions slow_reader(bool synchronises) {
  DeviceOptions options = device(synchronises);
  options.prefill_row = microseconds(400);
  return options;
}

// What the step takes on the device, launch included, over what was predicted.
double ratio(const DeviceWorker& worker) {
  return to_seconds(worker.device().work(worker.batch()) + milliseconds(1)) / to_seconds(worker.batch().predicted);
}

// How far the last of some hundred predictions, of steps of all kinds, are from what the device takes.
double worst_prediction(bool synchronises) {
  DeviceWorker worker(device(synchronises));
  for (int i = 0; i < 60; ++i) worker.ask(20, 400);
  worker.steps(50);
  double worst = 1;
  for (int i = 0; i < 4; ++i) worker.ask(5000, 5);
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(worker.step());
    if (i < 60 || worker.batch().rows.empty() || worker.batch().predicted == Duration::zero()) continue;
    worst = std::max({worst, ratio(worker), 1 / ratio(worker)});
  }
  return worst;
}

TEST(Device, StepTimesAreThoseOfTheDeviceAndNotOfTheLaunch) {
  EXPECT_LE(worst_prediction(true), 1.15);
  EXPECT_GE(worst_prediction(false), 3) << "without a wait for the device the plans would be of launches";
}

TEST(Device, AStepWithoutOutputsIsTimedToItsEnd) {
  for (const bool synchronises : {true, false}) {
    DeviceWorker worker(device(synchronises));
    worker.ask(4000, 2);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(worker.step());
      ASSERT_TRUE(worker.prefills());
      const Duration takes = worker.device().work(worker.batch());
      EXPECT_EQ(worker.result().compute, milliseconds(1) + (synchronises ? takes : Duration::zero()));
      EXPECT_EQ(worker.device().done(), synchronises);
    }
  }
}

TEST(Device, AHundredAndTwentyEightStreamsAreOnePassAndTakeItsTime) {
  DeviceWorker worker(device());
  for (int i = 0; i < DeviceWorker::kSlots; ++i) worker.ask(16, 100);
  while (worker.scheduler().streams()[1] < DeviceWorker::kSlots) ASSERT_TRUE(worker.step());
  const TimePoint begin = worker.now();
  worker.steps(40);
  EXPECT_EQ(worker.batch().passes, 1);
  EXPECT_EQ(worker.batch().rows.size(), 128u);
  EXPECT_EQ(worker.now() - begin, 40 * (milliseconds(13) + 128 * microseconds(25)));
}

// The longest gap of a hundred streams while long prompts are read, and the rows of prompts a second meanwhile.
std::pair<Duration, double> beside_prompts(const DeviceOptions& options) {
  DeviceWorker worker(options);
  std::vector<std::uint64_t> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(worker.ask(16, 2000));
  worker.steps(60);
  for (int i = 0; i < 4; ++i) worker.ask(6000, 4);  // what steps of all sizes take is known after these
  worker.steps(200);
  worker.begin();
  for (int i = 0; i < 4; ++i) worker.ask(6000, 4);
  const TimePoint begin = worker.now();
  TokenCount rows = 0;
  for (int i = 0; i < 150; ++i) {
    EXPECT_TRUE(worker.step());
    if (worker.prefills()) rows += static_cast<TokenCount>(worker.batch().rows.size());
  }
  Duration longest{};
  for (const std::uint64_t id : streams) longest = std::max(longest, worker.of(id).longest_gap);
  return {longest, rows / to_seconds(worker.now() - begin)};
}

TEST(Device, StreamsGetTheirTokensInTimeWhilePromptsAreRead) {
  const auto [longest, rows] = beside_prompts(device());
  EXPECT_LE(longest, milliseconds(150 + 15));
  EXPECT_GE(rows, 0.35 / 60e-6) << "and a third of the time at least goes into rows of prompts";
}

TEST(Device, AChunkIsNoLongerThanStreamsCanWaitOnASlowReader) {
  EXPECT_LE(beside_prompts(slow_reader(true)).first, milliseconds(150 + 15));
  EXPECT_GE(beside_prompts(slow_reader(false)).first, milliseconds(250)) << "as launches seem to take no time";
}

TEST(Device, TheForecastOfTheWaitIsWhatTheNextRequestWaits) {
  DeviceWorker worker(device());
  for (int i = 0; i < 3 * DeviceWorker::kSlots; ++i) worker.ask(40, 60);
  worker.steps(200);
  ASSERT_GT(worker.scheduler().waiting(), 32u);
  const Load load = worker.scheduler().load();
  const std::uint64_t last = worker.ask(40, 60);
  const Duration forecast = load.wait_of(0, ServiceClass::standard, 40, 0, 0);
  worker.run_to_first_token(last);
  const double waited = to_seconds(worker.of(last).first - worker.of(last).request->arrival);
  EXPECT_LE(to_seconds(forecast), 3 * waited);
  EXPECT_GE(to_seconds(forecast), waited / 3);

  // With a limit, admission lets in what the device can serve in time, and no more.
  AdmissionConfig config;
  config.slots = DeviceWorker::kSlots;
  for (const bool enough : {true, false}) {
    config.queue_wait.fill(enough ? 2 * forecast : forecast / 2);
    Admission admission(config);
    Result<Permit> permit = admission.enter({}, load, worker.now());
    ASSERT_TRUE(permit);
    EXPECT_EQ(admission.weigh(*permit, ServiceClass::standard, 40, load, worker.now()).has_value(), enough);
  }
}

// The longest gap of other streams while sequences of 3,000 tokens finish, with or without a cache for what they leave.
Duration beside_finishes(std::size_t cache_bytes) {
  DeviceWorker worker(device(), cache_bytes, DeviceWorker::kSlots);
  std::vector<std::uint64_t> streams;
  for (int i = 0; i < 60; ++i) streams.push_back(worker.ask(16, 1000));
  worker.steps(60);
  std::vector<std::uint64_t> long_ones;
  for (int i = 0; i < 4; ++i) long_ones.push_back(worker.ask(3000, 30));
  for (const std::uint64_t id : long_ones) worker.run_to_first_token(id);
  worker.begin();
  for (const std::uint64_t id : long_ones) worker.run_to_end(id);
  worker.steps(120);
  Duration longest{};
  for (const std::uint64_t id : streams) longest = std::max(longest, worker.of(id).longest_gap);
  EXPECT_EQ(worker.scheduler().reuse().cache_stats().entries > 0, cache_bytes > 0);
  return longest;
}

TEST(Device, WhatFinishesIsCopiedOverTheBusWhileOthersGetTheirTokens) {
  EXPECT_LE(beside_finishes(kRoom), beside_finishes(0) * 3 / 2);
}

// A prefix comes from its slot, or, when all slots were needed since, from the host: then over the bus.
TEST(Device, WhatIsCopiedInLeavesStreamsWithinTheirTargets) {
  for (const bool over_the_bus : {false, true}) {
    DeviceWorker worker(device(), kRoom, over_the_bus ? DeviceWorker::kSlots : 0);
    std::vector<std::uint64_t> streams;
    for (int i = 0; i < 60; ++i) streams.push_back(worker.ask(16, 2000));
    worker.steps(60);
    worker.run_to_end(worker.ask(3000, 4, ServiceClass::standard, 2900));
    worker.steps(120);
    if (over_the_bus) {
      for (int i = 60; i < DeviceWorker::kSlots; ++i) worker.ask(16, 100);
      worker.steps(300);
    }
    worker.begin();
    const std::uint64_t next = worker.ask(3000, 4, ServiceClass::standard, 2900);
    const TimePoint asked = worker.now();
    worker.run_to_end(next);
    const CachedSlots::Stats& slots = worker.scheduler().reuse().slots().stats;
    EXPECT_EQ(slots.copied, over_the_bus ? 0u : 1u);
    const double seconds = to_seconds(worker.of(next).first - asked);
    EXPECT_LT(seconds, over_the_bus ? 0.5 : 3000 * 60e-6) << "its prefix is not computed again";
    for (const std::uint64_t id : streams) EXPECT_LE(worker.of(id).longest_gap, milliseconds(150 + 15));
  }
}

// 3,000 tokens take longer over this bus than to compute them. Once that is known they are computed, which takes some
// restores: a single slow one may be an accident.
TEST(Device, ABusThatIsTooSlowIsNotUsedToBringBackPrefixes) {
  DeviceOptions options = device();
  options.bus_bytes_per_second = 2e8;
  DeviceWorker worker(options, kRoom);
  for (int i = 0; i < 3; ++i) worker.run_to_end(worker.ask(3000, 4, ServiceClass::standard, 2900));
  const std::uint64_t last = worker.ask(3000, 4, ServiceClass::standard, 2900);
  const TimePoint asked = worker.now();
  worker.run_to_first_token(last);
  EXPECT_LT(to_seconds(worker.of(last).first - asked), 1) << "2,900 tokens over the bus take 1.9 s";
}

}  // namespace
}  // namespace chasqui
