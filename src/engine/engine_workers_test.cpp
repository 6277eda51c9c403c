// The engine with several workers: what is different from one.
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "engine/fake_workers.h"

namespace chasqui {
namespace {

TEST(EngineWorkers, EveryStreamIsAsIfItWereAlone) {
  FakeClient client(workers(3, 2));
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 30; ++i) requests.push_back(client.submit(chat("story " + std::to_string(i)), 20, endless));
  client.read_to_end();
  for (const RequestPtr& request : requests) expect_as_alone(client, request);
  for (std::size_t worker = 0; worker < 3; ++worker) {
    EXPECT_GT(ended(client, worker), 0u) << worker;
    EXPECT_EQ(client.engine.metrics(worker).kv_slots_used.value(), 0);
  }
  EXPECT_EQ(client.engine.in_flight(), 0u);
}

TEST(EngineWorkers, ShapeIsOfAllTogether) {
  FakeClient client(workers(3, 2));
  EXPECT_EQ(client.engine.workers(), 3u);
  EXPECT_EQ(client.engine.shape().slots, 6);
  EXPECT_EQ(client.engine.shape().cells, 6 * 256);
  EXPECT_EQ(client.engine.shape().cells_per_slot, 256);
  EXPECT_EQ(client.engine.metrics(2).kv_slots_total.value(), 2);
}

TEST(EngineWorkers, ARequestWithAPinGoesWhereTheOthersOfThatPinWent) {
  FakeClient client(workers(2));
  const auto pinned = [](RequestDraft& draft) { draft.pin = 42; };
  client.read_to_end(client.submit(chat("first"), 5, pinned));
  const std::size_t home = ended(client, 0) == 1 ? 0 : 1;
  for (int i = 0; i < 20; ++i) client.submit(chat("more " + std::to_string(i)), 5, pinned);
  client.read_to_end();
  EXPECT_EQ(ended(client, home), 21u);
  EXPECT_EQ(ended(client, 1 - home), 0u);

  client.engine.unpin(42);
  std::vector<RequestPtr> fresh;
  for (int i = 0; i < 2; ++i) fresh.push_back(client.submit(chat("fresh " + std::to_string(i)), 5));
  client.read_to_end();
  EXPECT_EQ(client.engine.dispatch_metrics().pins.value(), 0);
}

TEST(EngineWorkers, APinAndItsEndMeanNothingWhereThereIsOneWorker) {
  FakeClient client;
  const RequestPtr request = client.submit(chat("alone"), 5, [](RequestDraft& draft) { draft.pin = 1; });
  client.engine.unpin(1);
  client.read_to_end();
  expect_as_alone(client, request);
}

TEST(EngineWorkers, WhatOneWorkerHasComputedIsNotComputedAgainByAnother) {
  StepClock clock;  // steps take time, and bringing back what was kept takes none
  ClientConfig config = workers(3);
  config.clock = &clock;
  config.engine.reuse.cache.bytes = 1 << 20;
  FakeClient client(config);
  const std::string prompt = chat("a question " + std::string(100, '?'));
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 9; ++i) {
    requests.push_back(client.submit(prompt, 3));
    client.read_to_end();
  }
  const auto size = static_cast<TokenCount>(requests.front()->prompt.size());
  ASSERT_GT(size, 2 * Placement::kWorthFollowing);
  EXPECT_EQ(client.of(requests.front()).last.usage.cached, 0);
  for (std::size_t i = 1; i < requests.size(); ++i) EXPECT_EQ(client.of(requests[i]).last.usage.cached, size - 1);
}

TEST(EngineWorkers, ShareTheMemoryForWhatIsKept) {
  constexpr std::int64_t kBytes = 8000;
  ClientConfig config = workers(2);
  config.engine.reuse.cache.bytes = kBytes;
  FakeClient client(config);
  for (int i = 0; i < 200; ++i) {
    client.submit(std::to_string(i) + " is the number of this question", 5);  // too different to go the same way
    if (i % 8 == 0) client.read_to_end();
  }
  client.read_to_end();
  for (std::size_t worker = 0; worker < 2; ++worker) {
    EXPECT_LE(client.engine.metrics(worker).snapshot_bytes.value(), kBytes / 2);
    EXPECT_GT(client.engine.metrics(worker).snapshot_bytes.value(), kBytes / 4);
  }
}

TEST(EngineWorkers, AreFullTogether) {
  StepGate gate;
  ClientConfig config = workers(2, 1);
  config.engine.beyond_slots_max = 3;
  config.gate = &gate;
  FakeClient client(config);
  for (int i = 0; i < 5; ++i) client.submit(chat(std::to_string(i)), 5);
  const Result<void> refused = client.engine.submit(client.make(chat("one too many")));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  EXPECT_EQ(client.engine.door_metrics().requests_refused.value(), 1u);
  gate.open();
  client.read_to_end();
  client.submit(chat("now"), 5);
  client.read_to_end();
}

TEST(EngineWorkers, FinishWhatIsInsideWhileDraining) {
  StepGate gate;
  ClientConfig config = workers(2, 1);
  config.gate = &gate;
  FakeClient client(config);
  std::vector<RequestPtr> inside;
  for (int i = 0; i < 6; ++i) inside.push_back(client.submit(chat(std::to_string(i)), 20));
  gate.wait_inside(2);
  client.engine.drain();
  const Result<void> refused = client.engine.submit(client.make(chat("late")));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  gate.open();
  client.read_to_end();
  for (const RequestPtr& request : inside) expect_as_alone(client, request);
}

TEST(EngineWorkers, TellTheirLoadAsOne) {
  StepGate gates[2];
  ClientConfig config = workers(2, 1);
  config.gates = {&gates[0], &gates[1]};
  FakeClient client(config);
  for (int i = 0; i < 3; ++i) client.submit("q" + std::to_string(i), 10, endless);
  for (StepGate& gate : gates) {
    gate.allow(1);
    gate.wait_inside(2);  // so the first step is over and its load is told
  }
  const Load load = client.engine.load();
  EXPECT_EQ(load.slots, 2);
  EXPECT_EQ(load.running, 2);
  for (StepGate& gate : gates) gate.open();
  client.read_to_end();
  EXPECT_EQ(client.engine.load().running, 0);
  EXPECT_GT(client.engine.load().slot_time, Duration::zero());
  EXPECT_EQ(client.engine.load().wait.of_short[1], Duration::zero());
}

TEST(EngineWorkers, AreAliveOnlyWhileAllAre) {
  StepGate stuck, moving;
  moving.open();
  StepClock clock;
  ClientConfig config = workers(2);
  config.gates = {&stuck, &moving};
  config.clock = &clock;
  FakeClient client(config);
  EXPECT_TRUE(client.engine.alive(clock.now() + seconds(100)));
  const RequestPtr hangs = client.submit("first", 1), moves = client.submit("second", 1);
  stuck.wait_inside(1);
  client.read_to_end(moves);
  EXPECT_EQ(client.of(hangs).finished, 0);
  EXPECT_TRUE(client.engine.alive(clock.now() + seconds(29)));
  EXPECT_FALSE(client.engine.alive(clock.now() + seconds(31)));
  EXPECT_EQ(client.engine.stuck_worker(clock.now() + seconds(31)), 0u);
  stuck.open();
  client.read_to_end();
  EXPECT_TRUE(client.engine.alive(clock.now() + seconds(29)));
}

TEST(EngineWorkersEnd, AllAreToldBeforeAnyIsWaitedFor) {
  StepGate gates[2];
  ClientConfig config = workers(2);
  config.context = 30'000;  // more than can be said before the end comes
  config.gates = {&gates[0], &gates[1]};
  auto client = std::make_unique<FakeClient>(config);
  for (int i = 0; i < 2; ++i) client->submit("a long story", -1, endless);
  for (const StepGate& gate : gates) gate.wait_inside(1);
  FakeClient& ending = *client;
  std::thread end([&client] { client.reset(); });
  while (!ending.engine.draining()) std::this_thread::yield();
  // The first is still inside its step, and is waited for; the second ends all the same.
  gates[1].open();
  const TimePoint hang = RealClock().now() + seconds(60);
  while (ended(ending, 1) == 0 && RealClock().now() < hang) std::this_thread::yield();
  const auto cancelled = static_cast<std::size_t>(FinishReason::cancelled);
  EXPECT_EQ(ending.engine.metrics(1).requests_finished[cancelled].value(), 1u);
  EXPECT_EQ(ended(ending, 0), 0u);
  gates[0].open();
  end.join();
}

TEST(EngineWorkersEnd, CancelsWhatStillRunsAndDoesNotHang) {
  for (int round = 0; round < 20; ++round) {
    FakeClient client(workers(3));
    for (int i = 0; i < 20; ++i) client.submit("a long story", -1, endless);
    if (round % 2 == 0) client.wait();
  }
}

TEST(EngineWorkersThreads, ManySubmittersAndCancellersGetEachRequestExactlyOneEnd) {
  constexpr int kThreads = 4, kRequests = 60;
  ClientConfig config = workers(3);
  config.context = 64;
  FakeClient client(config);
  std::atomic<int> accepted{0}, submitting{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const auto pinned = [&](RequestDraft& draft) {
          draft.sampling.ignore_eos = true;
          draft.pin = static_cast<std::uint64_t>(i % 5);
        };
        const RequestPtr request = client.make("thread " + std::to_string(t), 1 + i % 20, pinned);
        if (client.engine.submit(request).has_value()) ++accepted;
        if (i % 3 == 0) client.engine.cancel(request->id);
        if (i % 7 == 0) client.engine.cancel(RequestId{request->id.value / 2});
        if (i % 11 == 0) client.engine.unpin(static_cast<std::uint64_t>(i % 5));
      }
      --submitting;
      client.wakeup.signal();  // the reader must look once more when the last one is through
    });
  }
  EXPECT_TRUE(client.read_until([&] { return submitting == 0 && client.engine.in_flight() == 0; }));
  for (std::thread& thread : threads) thread.join();

  std::uint64_t ends = 0;
  for (std::size_t worker = 0; worker < 3; ++worker) ends += ended(client, worker);
  EXPECT_EQ(accepted, kThreads * kRequests);
  EXPECT_EQ(ends, static_cast<std::uint64_t>(accepted));
}

TEST(EngineWorkersMetrics, HaveALabelForEachWhereThereAreSeveral) {
  StepGate gate;
  ClientConfig config = workers(2);
  config.gate = &gate;
  FakeClient client(config);
  MetricsPage page;
  client.engine.add_metrics_to(page);
  for (int i = 0; i < 4; ++i) client.submit("story " + std::to_string(i), 25, endless);
  wait_until_placed(client, 4);
  gate.open();
  client.read_to_end();
  const std::string text = page.render();
  for (const char* line :
       {"chasqui_generation_tokens_total{worker=\"0\"} 50\n", "chasqui_generation_tokens_total{worker=\"1\"} 50\n",
        "chasqui_kv_slots{worker=\"1\"} 4\n", "chasqui_requests_finished_total{worker=\"1\",reason=\"length\"} 2\n",
        "chasqui_placements_total{reason=\"load\"} 4\n", "chasqui_slow_clients_total 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(EngineWorkersMetrics, StepsUntilACancelTookEffectAreCountedFromWhenItReachedItsWorker) {
  StepGate gate;
  ClientConfig config = workers(2);
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr request = client.submit("a long story", -1, endless);
  gate.allow(10);
  gate.wait_inside(11);
  client.engine.cancel(request->id);
  // Two more: when the second has been taken in, the pass that handed the cancel out is over.
  for (std::int64_t placed : {2, 3}) {
    client.submit("a short one", 1);
    wait_until_placed(client, placed);
  }
  gate.open();
  client.read_to_end();
  EXPECT_EQ(client.of(request).last.reason, FinishReason::cancelled);
  EXPECT_EQ(client.engine.metrics(0).cancel_steps.count(), 1u);
  EXPECT_EQ(client.engine.metrics(0).cancel_steps.sum(), 1) << "the step that it was inside";
  EXPECT_EQ(client.engine.metrics(1).cancel_steps.count(), 0u);
}

TEST(EngineWorkersMetrics, OfOneWorkerHaveNoneAndNoDispatcher) {
  FakeClient client;
  MetricsPage page;
  client.engine.add_metrics_to(page);
  EXPECT_EQ(page.render().find("worker="), std::string::npos);
  EXPECT_EQ(page.render().find("chasqui_placements_total"), std::string::npos);
  EXPECT_NE(page.render().find("chasqui_slow_clients_total 0\n"), std::string::npos);
}

TEST(EngineWorkers, ShowTheirSlotsAsOneRow) {
  StepGate gates[2];
  ClientConfig config = workers(2, 2);
  config.gates = {&gates[0], &gates[1]};
  FakeClient client(config);
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 2; ++i) requests.push_back(client.submit("q" + std::to_string(i), 10, endless));
  for (StepGate& gate : gates) {
    gate.allow(1);
    gate.wait_inside(2);  // the first step is shown
  }
  std::set<RequestId> shown;
  for (std::int32_t slot = 0; slot < client.engine.shape().slots; ++slot) {
    const RequestId request = client.engine.slot(SlotId{slot}).request;
    EXPECT_EQ(request.value != 0, slot % 2 == 0) << "the first slot of each worker: " << slot;
    if (request.value != 0) shown.insert(request);
  }
  EXPECT_EQ(shown, (std::set{requests[0]->id, requests[1]->id}));
  for (StepGate& gate : gates) gate.open();
  client.read_to_end();
}

TEST(EngineWorkers, AreKnownWithWhatTheyHaveAndOnlyOneOfThemIsStuck) {
  StepGate hanging;
  ClientConfig config = workers(2);
  config.gates = {&hanging, nullptr};
  FakeClient client(config);
  std::set<std::uint64_t> of_first, placed;
  for (std::uint64_t pin = 1; pin <= 6; ++pin) {
    const auto request = client.submit("story", 3, [&](RequestDraft& draft) { draft.pin = pin; });
    placed.insert(request->id.value);
  }
  hanging.wait_inside(1);
  const auto ids = client.engine.requests_of(0);
  ASSERT_TRUE(ids.has_value());
  for (const RequestId id : *ids) of_first.insert(id.value);
  EXPECT_GE(of_first.size(), 1u);
  EXPECT_LT(of_first.size(), placed.size()) << "the other one has some";
  EXPECT_TRUE(std::ranges::includes(placed, of_first));
  while (ended(client, 1) < placed.size() - of_first.size()) ::sched_yield();
  const TimePoint later = client.clock().now() + std::chrono::hours(1);
  EXPECT_TRUE(client.engine.stuck(0, later));
  EXPECT_FALSE(client.engine.stuck(1, client.clock().now()));
  hanging.open();
  client.read_to_end();
  EXPECT_TRUE(client.engine.requests_of(0)->empty());
}

TEST(EngineWorkers, ForgetATenantTogether) {
  ClientConfig config = workers(2);
  config.engine.reuse.cache.bytes = 1 << 20;
  FakeClient client(config);
  for (std::uint64_t pin = 1; pin <= 4; ++pin) {
    client.submit(chat("story " + std::to_string(pin)), 8, [&](RequestDraft& draft) {
      draft.pin = pin;
      draft.tenant.id = 1;
    });
  }
  client.read_to_end();
  ASSERT_GT(ended(client, 0), 0u);
  ASSERT_GT(ended(client, 1), 0u);
  EXPECT_EQ(*client.engine.forget({.id = 1}), 4u);
  EXPECT_EQ(*client.engine.forget({.id = 1}), 0u);
}

TEST(EngineWorkers, SleepEachForItselfAndAreAsleepWhenAllAre) {
  ClientConfig config = workers(2);
  config.engine.sleep_after = milliseconds(5);
  FakeClient client(config);
  for (int round = 0; round < 3; ++round) {
    while (!client.engine.sleeping()) std::this_thread::yield();
    EXPECT_FALSE(client.engine.stuck_worker(client.clock().now() + std::chrono::hours(1)).has_value());
    std::vector<RequestPtr> requests;
    for (int i = 0; i < 8; ++i) requests.push_back(client.submit(chat("story " + std::to_string(i)), 5));
    client.read_to_end();
    for (const RequestPtr& request : requests) expect_as_alone(client, request);
  }
  EXPECT_GT(client.engine.metrics(0).wakes.value() + client.engine.metrics(1).wakes.value(), 2u);
}

}  // namespace
}  // namespace chasqui
