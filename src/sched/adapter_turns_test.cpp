#include "sched/adapter_turns.h"

#include <map>

#include <gtest/gtest.h>

#include "sched/fake_life.h"
#include "sched/fake_worker.h"

namespace chasqui {
namespace {

AdapterSetPtr set_of(std::size_t adapter, float scale = 1) {
  constexpr std::uint64_t kContents[] = {11, 22, 33, 44};
  std::vector<float> scales(4);
  scales[adapter] = scale;
  return make_adapter_set(scales, kContents);
}

RequestPtr add_with(FakeWorker& worker, std::uint64_t id, const AdapterSetPtr& adapters, FakeWorker::Ask ask = {}) {
  ask.adapters = adapters;
  return worker.add(id, ask);
}

// Slots whose rows are computed in another pass than those before, in the last batch.
std::size_t holes(const Batch& batch) {
  std::size_t count = 0;
  for (std::size_t i = 1; i < batch.parts.size(); ++i) {
    count += batch.parts[i].slot.value != batch.parts[i - 1].slot.value + 1 ? 1 : 0;
  }
  return count;
}

TEST(AdapterSet, HasANameThatDependsOnFilesAndScales) {
  EXPECT_EQ(set_of(0)->id, set_of(0)->id);
  EXPECT_NE(set_of(0)->id, set_of(1)->id);
  EXPECT_NE(set_of(0)->id, set_of(0, 0.5f)->id);
  EXPECT_EQ(make_adapter_set({}, {}), nullptr);
  EXPECT_EQ(set_of(0, 0), nullptr) << "a scale of 0 is the model alone";
  EXPECT_TRUE(same_adapters(set_of(2).get(), set_of(2).get()));
  EXPECT_FALSE(same_adapters(set_of(2).get(), nullptr));
  EXPECT_FALSE(same_adapters(set_of(2).get(), set_of(2, 2).get()));
}

TEST(AdapterTurns, OneSetIsNeverSwitched) {
  FakeWorker worker(dense_streams());
  for (std::uint64_t id = 1; id <= 6; ++id) add_with(worker, id, set_of(1), {.max_tokens = 20});
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.adapter_turns().switches(), 0u);
}

// FakeModel fails the test when a batch has rows of two sets, or of another one than it says.
TEST(AdapterTurns, AllSetsGetTheSameTime) {
  SchedulerConfig config = dense_streams(12, 64, 400);
  config.exchanges = true;
  FakeWorker worker(config);
  for (std::uint64_t id = 1; id <= 12; ++id) {
    add_with(worker, id, id % 3 == 0 ? nullptr : set_of(id % 3), {.max_tokens = 300});
  }
  std::map<std::uint64_t, Duration> time;
  for (int steps = 0; steps < 800; ++steps) {
    ASSERT_TRUE(worker.step());
    if (worker.batch.rows.empty()) continue;
    time[id_of(worker.batch.adapters)] += worker.result.compute;
    if (steps > 200) {
      ASSERT_EQ(holes(worker.batch), 0u) << "rows of one set in slots that are not adjacent";
    }
  }
  ASSERT_EQ(time.size(), 3u);
  for (const auto& [id, spent] : time) EXPECT_NEAR(to_seconds(spent), to_seconds(time.begin()->second), 0.3);
  // Standard streams wait 150 ms for a token at most while others' prompts are read; a turn is a third of that.
  for (std::uint64_t id = 1; id <= 12; ++id) EXPECT_LE(worker.of(id).gap_max, milliseconds(250)) << id;
}

TEST(AdapterTurns, AnExpensiveChangeMakesTurnsLonger) {
  FakeWorker worker(dense_streams(2, 32, 2000));
  worker.switch_cost = milliseconds(40);
  add_with(worker, 1, set_of(1), {.max_tokens = 1500});
  add_with(worker, 2, set_of(2), {.max_tokens = 1500});
  std::uint64_t steps = 0;
  for (; steps < 2000; ++steps) ASSERT_TRUE(worker.step());
  EXPECT_GT(worker.scheduler.adapter_turns().switch_time(), milliseconds(30));
  EXPECT_LT(worker.scheduler.adapter_turns().switch_time(), milliseconds(50));
  EXPECT_LT(worker.scheduler.adapter_turns().switches(), steps / 60) << "of steps of a millisecond";
}

TEST(AdapterTurns, OneChangeThatTookMinutesDoesNotMakeTurnsLong) {
  FakeWorker worker(dense_streams(2, 32, 2000));
  add_with(worker, 1, set_of(1), {.max_tokens = 1500});
  add_with(worker, 2, set_of(2), {.max_tokens = 1500});
  for (int steps = 0; steps < 400; ++steps) ASSERT_TRUE(worker.step());
  const AdapterTurns& turns = worker.scheduler.adapter_turns();
  worker.switch_cost = seconds(600);
  for (const std::uint64_t before = turns.switches(); turns.switches() == before;) ASSERT_TRUE(worker.step());
  worker.switch_cost = {};
  const std::uint64_t before = turns.switches();
  for (int steps = 0; steps < 400; ++steps) ASSERT_TRUE(worker.step());
  EXPECT_LT(turns.switch_time(), milliseconds(10));
  EXPECT_GT(turns.switches(), before) << "the other set has its turn";
}

TEST(AdapterTurns, ALateInteractiveStreamComesBeforeTheTurnIsOver) {
  SchedulerConfig config = streams(4, 64, 900);
  FakeWorker worker(config);
  worker.switch_cost = milliseconds(60);  // a turn of half a second
  for (std::uint64_t id = 1; id <= 3; ++id) {
    add_with(worker, id, set_of(1), {.max_tokens = 800, .service_class = ServiceClass::background});
  }
  add_with(worker, 4, set_of(2), {.max_tokens = 60, .service_class = ServiceClass::interactive});
  worker.run_until_finished(4);
  EXPECT_LE(worker.of(4).gap_max, milliseconds(100 + 2 * 64)) << "its target, a step, and the change";
  EXPECT_GT(worker.of(1).tokens, 10) << "progress: the others have turns, too";
}

TEST(AdapterTurns, NoSetStarvesWhileOthersComeAndGo) {
  SchedulerConfig config = dense_streams(6, 32, 400);
  config.exchanges = true;
  FakeWorker worker(config);
  add_with(worker, 1, set_of(3), {.max_tokens = 100});
  std::uint64_t next = 2;
  for (int steps = 0; !worker.finished(1); ++steps) {
    ASSERT_LT(steps, 8000) << "progress";
    // Always a new request of the two other sets.
    while (worker.scheduler.waiting() + worker.scheduler.running() < 5) {
      add_with(worker, next, next % 2 == 0 ? nullptr : set_of(1), {.max_tokens = 2});
      ++next;
    }
    ASSERT_TRUE(worker.step());
  }
  EXPECT_LE(worker.of(1).gap_max, milliseconds(400));
}

// Where a move takes 131 us for each token: 128 KiB are copied out of a slot and into another one.
SchedulerConfig with_dear_copies() {
  SchedulerConfig config = dense_streams(4, 512, 4096);
  config.exchanges = true;
  config.reuse.kv_token_bytes = 131'072;
  return config;
}

// Two streams of either set, in alternate slots.
void add_alternating(FakeWorker& worker, TokenCount prompt, std::int64_t max_tokens) {
  for (std::uint64_t id = 1; id <= 4; ++id) {
    add_with(worker, id, set_of(id % 2), {.prompt = prompt, .max_tokens = max_tokens});
  }
}

TEST(AdapterTurns, LongSequencesAreNotExchangedBesideStreams) {
  FakeWorker worker(with_dear_copies());
  add_alternating(worker, 1500, 100);  // an exchange takes 400 ms
  while (!worker.finished(1)) {
    ASSERT_TRUE(worker.step());
    ASSERT_EQ(worker.batch.copying, Duration::zero());
  }
  EXPECT_EQ(worker.scheduler.moves(), 0u);
  worker.run_to_end();
}

TEST(AdapterTurns, ShortSequencesAreExchangedWhenThatHasCostAsMuch) {
  FakeWorker worker(with_dear_copies());
  add_alternating(worker, 100, 300);  // an exchange takes 26 ms, and streams have less than one in a step
  int apart = 0;
  while (worker.scheduler.moves() == 0) {
    ASSERT_TRUE(worker.step());
    apart += worker.batch.kind == Batch::Kind::decode && holes(worker.batch) > 0 ? 1 : 0;
    ASSERT_LE(worker.batch.copying, milliseconds(60));
  }
  EXPECT_GT(apart, 5) << "steps whose time for copies did not suffice";
  for (int steps = 0; steps < 100; ++steps) ASSERT_TRUE(worker.step());
  for (int steps = 0; steps < 40; ++steps) {
    ASSERT_TRUE(worker.step());
    ASSERT_EQ(holes(worker.batch), 0u);
  }
  EXPECT_EQ(worker.scheduler.moves(), 2u) << "one exchange";
}

TEST(AdapterTurns, NothingIsGivenUpForAMoveThatTakesTooLong) {
  SchedulerConfig config = with_cache(with_dear_copies(), 1 << 30);
  config.reuse.kv_block = 16;
  FakeWorker worker(config);
  add_with(worker, 1, set_of(1), {.prompt = 200, .max_tokens = 2});
  worker.run_to_end();
  ASSERT_EQ(worker.scheduler.ledger().slots_cached(), 1);
  for (std::uint64_t id = 2; id <= 3; ++id) add_with(worker, id, set_of(id % 2), {.prompt = 1500, .max_tokens = 60});
  while (!worker.finished(2)) ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.model.saves(), 0u) << "the cached slot is copied out for a move into it";
  EXPECT_EQ(worker.scheduler.moves(), 0u);
}

// docs/lora.md: the memory of an adapter that was unloaded is free when the last request with it has ended.
TEST(AdapterTurns, WhatIsRememberedOfTheLastTurnKeepsNoAdapterLoaded) {
  const auto lease = std::make_shared<const int>(1);
  const AdapterChoice choice{{0, 1, 1}, 11, lease};
  RequestDraft draft;
  draft.prompt = test_prompt(10, 1);
  draft.max_tokens = 5;
  draft.adapters = make_chosen_set({&choice, 1});
  RunningSequences running;
  running.push_back(std::make_unique<Sequence>(test_request(1, std::move(draft))));
  running.back()->start(SlotId{0}, TimePoint{});
  const SchedulerTargets targets;
  AdapterTurns turns(targets);
  EXPECT_EQ(turns.next(running, TimePoint{})->uses, (std::vector<AdapterUse>{{0, 1, 1}}));
  EXPECT_EQ(lease.use_count(), 3) << "the list of adapters, and the request";
  running.clear();
  EXPECT_EQ(lease.use_count(), 2);
}

TEST(AdapterTurns, TheCacheIsNotSharedBetweenSets) {
  FakeWorker worker(with_cache(dense_streams()));
  const FakeWorker::Ask ask{.prompt = 60, .max_tokens = 2, .shared = 60};
  add_with(worker, 1, set_of(1), ask);
  worker.run_to_end();
  add_with(worker, 2, set_of(2), ask);
  add_with(worker, 3, nullptr, ask);
  add_with(worker, 4, set_of(1, 0.5f), ask);
  worker.run_to_end();
  add_with(worker, 5, set_of(1), ask);
  worker.run_to_end();
  for (std::uint64_t id = 2; id <= 4; ++id) EXPECT_EQ(worker.cached(id), 0) << id;
  EXPECT_GT(worker.cached(5), 50);
}

TEST(AdapterTurns, APrefixIsComputedForItsSetOnly) {
  FakeWorker worker(with_cache(dense_streams(4, 16)));
  const FakeWorker::Ask ask{.prompt = 70, .max_tokens = 2, .shared = 70};
  for (std::uint64_t id = 1; id <= 6; ++id) add_with(worker, id, id % 2 == 0 ? nullptr : set_of(1), ask);
  worker.run_to_end();
  int computed = 0;
  for (std::uint64_t id = 1; id <= 6; ++id) computed += worker.cached(id) == 0 ? 1 : 0;
  EXPECT_EQ(computed, 2) << "once for each set";
}

// Random lives with several sets: FakeWorker checks each step and each answer.
void simulate_adapters(std::uint64_t seed, bool unified) {
  SCOPED_TRACE("seed " + std::to_string(seed) + (unified ? ", one pool" : ", streams"));
  Dice dice(seed);
  SchedulerConfig config = draw_config(dice, 200, unified);
  config.exchanges = dice.permille(700);
  config.reuse.cache.bytes = dice.permille(700) ? 20'000 : 0;
  FakeWorker worker(config);
  worker.switch_cost = milliseconds(dice.below(20));
  std::uint64_t born = 0;
  while (born < 150 && !testing::Test::HasFailure()) {
    if (dice.permille(200) && worker.scheduler.waiting() < 24) {
      FakeWorker::Ask ask;
      ask.shared = dice.permille(600) ? dice.between(10, 60) : 0;
      ask.prompt = ask.shared + dice.between(1, 60);
      ask.max_tokens = dice.between(0, 30);
      ask.service_class = static_cast<ServiceClass>(dice.below(3));
      ask.tenant = static_cast<std::uint32_t>(dice.below(2));
      if (dice.permille(100)) ask.timeout_ms = dice.between(1, 500);
      if (dice.permille(700))
        ask.adapters = set_of(static_cast<std::size_t>(dice.below(4)), dice.permille(500) ? 1 : 2);
      worker.add(++born, ask);
    }
    if (dice.permille(20) && born > 0)
      worker.cancel(static_cast<std::uint64_t>(dice.between(1, static_cast<int>(born))));
    if (dice.permille(10)) worker.model.restores_to_fail = 1;
    if (!worker.step(dice.permille(10)   ? DecodeStatus::aborted
                     : dice.permille(10) ? DecodeStatus::failed
                                         : DecodeStatus::ok)) {
      worker.clock.advance(milliseconds(1));
    }
  }
  worker.model.restores_to_fail = 0;
  if (!testing::Test::HasFailure()) worker.run_to_end();
  EXPECT_TRUE(worker.scheduler.idle());
}

TEST(AdapterTurns, RandomLivesOfManySets) {
  for (std::uint64_t seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed)
    simulate_adapters(seed, seed % 3 == 0);
}

}  // namespace
}  // namespace chasqui
