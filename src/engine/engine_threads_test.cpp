// The engine under several threads at once, and its end: what sanitizers should see.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/fake_client.h"

namespace chasqui {
namespace {

TEST(EngineEnd, CancelsWhatStillRunsAndDoesNotHang) {
  for (int round = 0; round < 20; ++round) {
    FakeClient client;
    for (int i = 0; i < 10; ++i) client.submit("a long story", -1, endless);
    if (round % 2 == 0) client.wait();
  }
}

TEST(EngineEnd, AnEngineThatNeverWorkedEndsAtOnce) {
  for (int round = 0; round < 20; ++round) FakeClient client;
}

TEST(EngineEnd, WaitsForTheStepThatRuns) {
  StepGate gate;
  std::atomic<bool> ended{false};
  ClientConfig config;
  config.gate = &gate;
  auto client = std::make_unique<FakeClient>(config);
  client->submit("a long story", -1, endless);
  gate.wait_inside(1);
  std::thread ending([&] {
    client.reset();
    ended = true;
  });
  EXPECT_FALSE(ended) << "the worker is still inside its step";
  gate.open();
  ending.join();
  EXPECT_TRUE(ended);
}

TEST(EngineLeaving, ASequenceAloneInAPrefillStepCutsIt) {
  StepGate gate;
  ClientConfig config;
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr leaving = client.submit("an abandoned question", -1, endless);
  gate.wait_inside(1);
  client.engine.cancel(leaving->id);
  gate.open();
  client.read_to_end(leaving);
  EXPECT_EQ(client.of(leaving).last.reason, FinishReason::cancelled);
  EXPECT_EQ(client.engine.metrics().aborted_steps.value(), 1u);
  EXPECT_EQ(client.engine.metrics().prompt_tokens.value(), 0u);

  const RequestPtr next = client.submit("the next question", 5);
  client.read_to_end(next);
  EXPECT_EQ(client.of(next).tokens, answer_alone(*next).tokens);
  EXPECT_EQ(client.engine.metrics().aborted_steps.value(), 1u) << "the flag was cleared";
}

TEST(EngineLeaving, ACancelOfAnotherRequestCutsNoStep) {
  StepGate gate;
  ClientConfig config;
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr read = client.submit("the first question", 5);
  gate.wait_inside(1);
  // After the step has begun, and of a less urgent class: so its arrival cuts nothing either.
  const RequestPtr other =
      client.submit("another one", 5, [](RequestDraft& draft) { draft.service_class = ServiceClass::background; });
  client.engine.cancel(other->id);
  gate.open();
  client.read_to_end();
  EXPECT_EQ(client.of(read).text, answer_alone(*read).text);
  EXPECT_EQ(client.of(other).last.reason, FinishReason::cancelled);
  EXPECT_EQ(client.engine.metrics().aborted_steps.value(), 0u);
}

// How many steps are cut when a request of class `newcomer` arrives while a long prompt is read in the background.
std::uint64_t cut_by(ServiceClass newcomer) {
  StepGate gate;
  StepClock clock;
  ClientConfig config;
  config.context = 1024;
  config.gate = &gate;
  config.clock = &clock;
  config.step_time = milliseconds(500);
  FakeClient client(config);
  const auto of_class = [](ServiceClass service_class) {
    return [service_class](RequestDraft& draft) { draft.service_class = service_class; };
  };
  std::string words;
  for (int i = 0; i < 400; ++i) words += "word ";
  const RequestPtr reading = client.submit(words, 3, of_class(ServiceClass::background));
  gate.allow(4);  // which tell how long a step takes
  gate.wait_inside(5);
  const RequestPtr next = client.submit("a question", 3, of_class(newcomer));
  gate.open();
  client.read_to_end();
  for (const RequestPtr& request : {reading, next}) {
    EXPECT_EQ(client.of(request).text, answer_alone(*request).text) << "what was lost is computed again";
  }
  return client.engine.metrics().aborted_steps.value();
}

TEST(EngineClasses, AnArrivalForWhichTheStepIsTooLongCutsIt) {
  EXPECT_EQ(cut_by(ServiceClass::interactive), 1u);
  EXPECT_EQ(cut_by(ServiceClass::background), 0u);
}

TEST(EngineEnd, AnInboxFullOfCancelsDoesNotKeepItFromEnding) {
  StepGate gate;
  ClientConfig config;
  config.engine.beyond_slots_max = 0;
  config.gate = &gate;
  auto client = std::make_unique<FakeClient>(config);
  const RequestPtr request = client->submit("a long story", -1, endless);
  gate.wait_inside(1);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) client->engine.cancel(request->id);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a cancel was lost"), std::string::npos);
  gate.open();
  client.reset();
}

TEST(EngineThreads, ManySubmittersAndCancellersGetEachRequestExactlyOneEnd) {
  constexpr int kThreads = 4, kRequests = 60;
  ClientConfig config;
  config.slots = 8;
  config.context = 64;
  FakeClient client(config);
  std::atomic<int> accepted{0}, submitting{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const RequestPtr request = client.make("thread " + std::to_string(t), 1 + i % 20, endless);
        if (client.engine.submit(request).has_value()) ++accepted;
        if (i % 3 == 0) client.engine.cancel(request->id);
        if (i % 7 == 0) client.engine.cancel(RequestId{request->id.value / 2});
      }
      --submitting;
      client.wakeup.signal();  // the reader must look once more when the last one is through
    });
  }
  EXPECT_TRUE(client.read_until([&] { return submitting == 0 && client.engine.in_flight() == 0; }));
  for (std::thread& thread : threads) thread.join();

  const EngineMetrics& metrics = client.engine.metrics();
  std::uint64_t ended = 0;
  for (const Counter& counter : metrics.requests_finished) ended += counter.value();
  EXPECT_EQ(accepted, kThreads * kRequests);
  EXPECT_EQ(ended, static_cast<std::uint64_t>(accepted));
  EXPECT_EQ(metrics.kv_cells_used.value(), 0);
}

TEST(EngineThreads, MetricsCanBeReadWhileItWorks) {
  FakeClient client;
  MetricsPage page;
  client.engine.metrics().each_worker.add_to(page);
  for (int i = 0; i < 8; ++i) client.submit("story", 100, endless);
  EXPECT_TRUE(client.read_until([&] {
    EXPECT_NE(page.render().find("chasqui_generation_tokens_total"), std::string::npos);
    return client.engine.in_flight() == 0;
  }));
  EXPECT_NE(page.render().find("chasqui_requests_finished_total{reason=\"length\"} 8\n"), std::string::npos);
  EXPECT_NE(page.render().find("chasqui_generation_tokens_total 800\n"), std::string::npos);
}

TEST(EngineThreads, AReaderThatNeverComesGetsItsRequestsCancelledRatherThanAllTheMemory) {
  ClientConfig config;
  config.slots = 1;
  config.context = 16384;
  config.engine.beyond_slots_max = 4;  // each adds a few that may wait
  FakeClient client(config);
  const RequestPtr request = client.submit("story", 16000, endless);
  // Nothing is taken until the worker has given up by itself.
  const Counter& cancelled =
      client.engine.metrics().requests_finished[static_cast<std::size_t>(FinishReason::cancelled)];
  const TimePoint hang = client.clock().now() + seconds(60);
  while (cancelled.value() == 0 && client.clock().now() < hang) std::this_thread::yield();
  EXPECT_EQ(cancelled.value(), 1u);

  client.read_to_end(request);
  EXPECT_EQ(client.of(request).last.reason, FinishReason::cancelled);
  EXPECT_LT(client.of(request).tokens, 8000);
  const RequestPtr next = client.submit("story", 5, endless);
  client.read_to_end(next);
  EXPECT_EQ(client.of(next).tokens, 5);
}

TEST(EngineAlive, IsFalseOnlyWhileOneStepTakesTooLong) {
  StepGate gate;
  StepClock clock;
  ClientConfig config;
  config.gate = &gate;
  config.clock = &clock;
  config.engine.stuck_after = seconds(30);
  FakeClient client(config);
  EXPECT_TRUE(client.engine.alive(clock.now()));
  client.submit("story", 1);
  gate.wait_inside(1);
  EXPECT_TRUE(client.engine.alive(clock.now() + seconds(29)));
  EXPECT_FALSE(client.engine.alive(clock.now() + seconds(30)));
  gate.open();
  client.read_to_end();
  EXPECT_TRUE(client.engine.alive(clock.now() + seconds(29)));
}

}  // namespace
}  // namespace chasqui
