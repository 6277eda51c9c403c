#include "engine/engine.h"

#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/fake_workers.h"

namespace chasqui {
namespace {

constexpr std::string_view kChat = "<|im_start|>user\nTell me a story<|im_end|>\n<|im_start|>assistant\n";

TEST(Engine, AnswersAsTheModelDoesAlone) {
  FakeClient client;
  const RequestPtr request = client.submit(kChat);
  EXPECT_EQ(client.engine.in_flight(), 1u);
  client.read_to_end(request);
  expect_as_alone(client, request);
  const FakeClient::Answer& answer = client.of(request);
  EXPECT_EQ(answer.events, answer.tokens + 1) << "a text event for each token, then the finished one";
  EXPECT_GT(answer.tokens, 3);
  EXPECT_EQ(answer.last.usage.prompt, static_cast<TokenCount>(request->prompt.size()));
  EXPECT_EQ(client.engine.in_flight(), 0u);
}

struct StreamCrowd {
  int streams;
  std::int32_t slots;
  bool unified;
};

class EngineCrowd : public testing::TestWithParam<StreamCrowd> {};

TEST_P(EngineCrowd, EveryStreamIsAsIfItWereAlone) {
  ClientConfig config;
  config.slots = GetParam().slots;
  config.unified = GetParam().unified;
  FakeClient client(config);
  std::vector<RequestPtr> requests;
  for (int i = 0; i < GetParam().streams; ++i) {
    requests.push_back(client.submit(chat("story number " + std::to_string(i) + std::string(5 * i, '.')),
                                     i % 3 == 0 ? 40 : -1, [i](RequestDraft& draft) {
                                       draft.sampling.temperature = i % 2 == 0 ? 0.0f : 1.5f;
                                       draft.sampling.seed = static_cast<std::uint32_t>(i);
                                       // Strong enough to change what comes after each full stop.
                                       draft.sampling.presence_penalty = i % 4 == 0 ? 100.0f : 0.0f;
                                       draft.sampling.ignore_eos = i % 5 == 0;
                                     }));
  }
  client.read_to_end();
  for (const RequestPtr& request : requests) expect_as_alone(client, request);
  EXPECT_EQ(client.engine.metrics().kv_slots_used.value(), 0);
}

INSTANTIATE_TEST_SUITE_P(Streams, EngineCrowd,
                         testing::Values(StreamCrowd{5, 8, false}, StreamCrowd{5, 2, true}, StreamCrowd{16, 16, false},
                                         StreamCrowd{16, 4, false}, StreamCrowd{16, 4, true}),
                         [](const auto& param) {
                           return std::to_string(param.param.streams) + "on" + std::to_string(param.param.slots) +
                                  (param.param.unified ? "pool" : "streams");
                         });

TEST(Engine, ACancelCostsAtMostTheStepThatRunsAndTheSlotIsGoodAgain) {
  StepGate gate;
  ClientConfig config;
  config.slots = 1;
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr leaving = client.submit(kChat, -1, endless);  // its prompt fills more than one step
  gate.allow(9);
  gate.wait_inside(10);
  const EngineMetrics& metrics = client.engine.metrics();
  EXPECT_EQ(metrics.requests_running.value(), 1);
  EXPECT_EQ(metrics.kv_slots_used.value(), 1);
  EXPECT_GT(metrics.kv_cells_used.value(), static_cast<std::int64_t>(leaving->prompt.size()));
  client.engine.cancel(leaving->id);
  gate.allow(1);
  client.read_to_end(leaving);
  EXPECT_EQ(client.of(leaving).last.reason, FinishReason::cancelled);
  EXPECT_EQ(metrics.decode_steps.value() + metrics.prefill_steps.value(), 10u);
  EXPECT_EQ(metrics.kv_slots_used.value(), 0);
  EXPECT_EQ(metrics.kv_cells_used.value(), 0);
  const std::string said = client.of(leaving).text;
  EXPECT_EQ(answer_alone(*leaving).text.substr(0, said.size()), said);

  gate.open();
  const RequestPtr next = client.submit(kChat);
  client.read_to_end(next);
  expect_as_alone(client, next);
}

TEST(Engine, ACancelReachesThoseWhoWaitAndThoseWhosePromptIsRead) {
  StepGate gate;
  ClientConfig config;
  config.slots = 1;
  config.rows_max = 4;
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr reading = client.submit(kChat);
  const RequestPtr waiting = client.submit(kChat);
  gate.wait_inside(1);
  client.engine.cancel(reading->id);
  client.engine.cancel(waiting->id);
  client.engine.cancel(RequestId{12345});
  gate.open();
  client.read_to_end();
  for (const RequestPtr& request : {reading, waiting}) {
    EXPECT_EQ(client.of(request).last.reason, FinishReason::cancelled);
    EXPECT_EQ(client.of(request).tokens, 0);
  }
  client.engine.cancel(reading->id);  // too late: harmless
  const RequestPtr next = client.submit(kChat);
  client.read_to_end();
  expect_as_alone(client, next);
}

TEST(Engine, AHundredRequestsLeaveNoCellBehindAndTheMetricsAddUp) {
  FakeClient client;
  const EngineMetrics& metrics = client.engine.metrics();
  std::uint64_t prompt_tokens = 0, tokens = 0;
  for (int i = 0; i < 100; ++i) {
    const RequestPtr request = client.submit(chat("question " + std::to_string(i)), i % 10);
    client.read_to_end(request);
    prompt_tokens += request->prompt.size();
    tokens += static_cast<std::uint64_t>(client.of(request).tokens);
    ASSERT_EQ(metrics.kv_cells_used.value(), 0);
    ASSERT_EQ(metrics.kv_slots_used.value(), 0);
    ASSERT_EQ(metrics.requests_running.value(), 0);
    ASSERT_EQ(metrics.requests_waiting[1].value(), 0);
  }
  EXPECT_EQ(metrics.prompt_tokens.value(), prompt_tokens);
  EXPECT_EQ(metrics.generation_tokens.value(), tokens);
  EXPECT_EQ(metrics.requests_finished[static_cast<int>(FinishReason::length)].value() +
                metrics.requests_finished[static_cast<int>(FinishReason::stop)].value(),
            100u);
  EXPECT_EQ(metrics.request_seconds.count(), 100u);
  EXPECT_EQ(metrics.waits[1].time_to_first_token_seconds.count(), 90u) << "ten were asked for no token";
  EXPECT_EQ(client.engine.door_metrics().requests_refused.value(), 0u);
}

TEST(Engine, RefusesWhenTooManyWaitAndHarmsNoAdmittedRequest) {
  StepGate gate;
  ClientConfig config;
  config.slots = 2;
  config.engine.beyond_slots_max = 3;
  config.gate = &gate;
  FakeClient client(config);
  std::vector<RequestPtr> inside;
  for (int i = 0; i < 5; ++i) inside.push_back(client.submit(chat(std::to_string(i)), 20));
  for (int i = 0; i < 3; ++i) {
    const Result<void> refused = client.engine.submit(client.make(kChat));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  }
  EXPECT_EQ(client.engine.door_metrics().requests_refused.value(), 3u);
  EXPECT_EQ(client.engine.in_flight(), 5u);
  gate.open();
  client.read_to_end();
  for (const RequestPtr& request : inside) expect_as_alone(client, request);
  const RequestPtr later = client.submit(kChat);
  client.read_to_end();
  expect_as_alone(client, later);
}

TEST(Engine, WhileDrainingRefusesTheNewAndFinishesTheOld) {
  StepGate gate;
  ClientConfig config;
  config.slots = 1;
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr running = client.submit(kChat, 20), waiting = client.submit(chat("another"), 20);
  gate.wait_inside(1);
  client.engine.drain();
  EXPECT_TRUE(client.engine.draining());
  const Result<void> refused = client.engine.submit(client.make(kChat));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  gate.open();
  client.read_to_end();
  expect_as_alone(client, running);
  expect_as_alone(client, waiting);
  EXPECT_FALSE(client.engine.submit(client.make(kChat)).has_value());
}

TEST(Engine, AFailedStepEndsItsOwnRequestsAndTheEngineGoesOn) {
  StepGate gate;
  ClientConfig config;
  config.gate = &gate;
  config.fail_step = 4;  // 1: first prompt, 2: a token of it, 3: the second prompt, 4: a token of each
  config.rows_max = 128;
  FakeClient client(config);
  const RequestPtr first = client.submit(kChat, -1, endless);
  gate.allow(1);
  gate.wait_inside(2);
  const RequestPtr second = client.submit(chat("second"), -1, endless);
  gate.allow(2);
  gate.wait_inside(4);
  const RequestPtr third = client.submit(chat("third"));
  gate.open();
  client.read_to_end();
  for (const RequestPtr& request : {first, second}) {
    EXPECT_EQ(client.of(request).last.reason, FinishReason::error);
    EXPECT_EQ(client.of(request).last.error.code, ErrorCode::model_failure);
    EXPECT_EQ(answer_alone(*request).text.find(client.of(request).text), 0u);
  }
  EXPECT_EQ(client.of(first).tokens, 2);
  EXPECT_EQ(client.of(second).tokens, 1);
  expect_as_alone(client, third);
  EXPECT_EQ(client.engine.metrics().failed_steps.value(), 1u);
  const RequestPtr after = client.submit(kChat);
  client.read_to_end();
  expect_as_alone(client, after);
}

TEST(Engine, AStopStringEndsTheAnswerBeforeIt) {
  FakeClient client;
  const RequestPtr request = client.submit(chat("say: one two three four"), -1, [](RequestDraft& draft) {
    draft.stop = {"three", "zzz"};
  });
  client.read_to_end();
  EXPECT_EQ(client.of(request).text, "one two ");
  EXPECT_EQ(client.of(request).last.reason, FinishReason::stop);
  EXPECT_EQ(client.of(request).last.stop_string, "three");
}

TEST(Engine, TextHeldForAStopStringThatDoesNotComeIsSentAtTheEnd) {
  FakeClient client;
  const auto stop = [](RequestDraft& draft) { draft.stop = {"four five"}; };
  const RequestPtr ends = client.submit(chat("say: one two three four"), -1, stop);
  const RequestPtr cut = client.submit(chat("say: four six"), 1, stop);
  client.read_to_end();
  EXPECT_EQ(client.of(ends).text, "one two three four");
  EXPECT_EQ(client.of(ends).last.reason, FinishReason::stop);
  EXPECT_EQ(client.of(ends).last.stop_string, "");
  EXPECT_EQ(client.of(cut).last.reason, FinishReason::length);
  EXPECT_EQ(client.of(cut).tokens, 1);
  EXPECT_EQ(client.of(cut).text, answer_alone(*cut).text);
  EXPECT_FALSE(client.of(cut).last.text.empty()) << "what was held comes with the end";
}

TEST(Engine, ADeadlineEndsARequestAndWhatWasSaidHasBeenSent) {
  StepClock clock;
  ClientConfig config;
  config.clock = &clock;
  FakeClient client(config);
  const RequestPtr request = client.submit(kChat, -1, [](RequestDraft& draft) {
    endless(draft);
    draft.timeout_ms = 20;  // a step takes one
  });
  client.read_to_end();
  EXPECT_EQ(client.of(request).last.reason, FinishReason::deadline);
  const auto prefills = static_cast<TokenCount>(client.engine.metrics().prefill_steps.value());
  EXPECT_EQ(client.of(request).tokens, 20 - prefills + 1);
  EXPECT_EQ(answer_alone(*request).text.find(client.of(request).text), 0u);
  EXPECT_EQ(client.of(request).last.usage.queue + client.of(request).last.usage.prefill +
                client.of(request).last.usage.decode,
            milliseconds(20));
}

TEST(Engine, AReaderThatTakesNothingDoesNotStopTheWorker) {
  FakeClient client;
  for (int i = 0; i < 20; ++i) client.submit(chat(std::to_string(i)), 100, endless);
  const Counter& finished = client.engine.metrics().requests_finished[static_cast<int>(FinishReason::length)];
  while (finished.value() < 20 && client.wait()) client.wakeup.acknowledge();
  EXPECT_EQ(finished.value(), 20u);
  EXPECT_EQ(client.engine.in_flight(), 20u) << "not taken yet";
  client.take();
  EXPECT_EQ(client.engine.in_flight(), 0u);
  EXPECT_EQ(client.events(), 20u * 101);
}

// As the places do that thousands are told at once: the loop has no time between two steps to take them.
TEST(Engine, ManyWhoWaitAndEndAtOnceDoNotCountAsAReaderThatTakesNothing) {
  constexpr int kWait = 5000;
  StepClock clock;
  StepGate gate;
  ClientConfig config;
  config.clock = &clock;
  config.gate = &gate;
  config.slots = 1;
  config.engine.beyond_slots_max = kWait;
  FakeClient client(config);
  const RequestPtr running = client.submit(kChat, 100, endless);
  for (int i = 0; i < kWait; ++i) client.submit(kChat, 1, [](RequestDraft& draft) { draft.timeout_ms = 20; });
  gate.open();
  const Counter& late = client.engine.metrics().requests_finished[static_cast<int>(FinishReason::deadline)];
  const Counter& whole = client.engine.metrics().requests_finished[static_cast<int>(FinishReason::length)];
  const TimePoint hang = RealClock().now() + seconds(60);
  while (late.value() + whole.value() <= kWait && RealClock().now() < hang) std::this_thread::yield();
  // The counters go up before the events are there.
  while (client.of(running).last.kind != Event::Kind::finished && RealClock().now() < hang) client.take();
  EXPECT_GT(late.value(), 4500u) << "in one step";
  EXPECT_EQ(client.of(running).last.reason, FinishReason::length) << "and not cancelled";
}

#ifdef __linux__
// An eventfd counts the signals since it was last read, so the test can too.
TEST(Engine, SignalsOncePerStepHoweverManyStreamsSpeak) {
  ClientConfig config;
  config.slots = 16;
  FakeClient client(config);
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 16; ++i) requests.push_back(client.submit(chat(std::to_string(i)), 50, endless));
  std::uint64_t signals = 0;
  while (client.engine.in_flight() > 0 && client.wait()) {
    std::uint64_t count = 0;
    ASSERT_EQ(::read(client.wakeup.fd(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
    signals += count;
    client.take();
  }
  const EngineMetrics& metrics = client.engine.metrics();
  EXPECT_LE(signals, metrics.decode_steps.value() + metrics.prefill_steps.value());
  EXPECT_EQ(client.events(), 16u * 51);
  EXPECT_LT(signals, client.events() / 4) << "events of a step travel together";
}
#endif

}  // namespace
}  // namespace chasqui
