// An engine whose model sleeps when there is nothing to do.
#include <thread>

#include <gtest/gtest.h>

#include "engine/fake_client.h"

namespace chasqui {
namespace {

ClientConfig sleepy() {
  ClientConfig config;
  config.engine.sleep_after = milliseconds(5);
  config.engine.reuse.cache.bytes = 1 << 20;
  return config;
}

void wait_asleep(FakeClient& client) {
  while (!client.engine.sleeping()) std::this_thread::yield();
}

TEST(EngineSleep, AnswersAfterwardsAsBefore) {
  FakeClient client(sleepy());
  for (int i = 0; i < 5; ++i) {
    wait_asleep(client);
    EXPECT_TRUE(client.engine.alive(client.clock().now() + std::chrono::hours(1))) << "sleeping is not hanging";
    const RequestPtr request = client.submit(story(1), 20);
    client.read_to_end(request);
    EXPECT_EQ(client.of(request).text, answer_alone(*request).text);
    EXPECT_EQ(client.of(request).last.usage.cached > 0, i > 0) << "snapshots outlive the sleep";
  }
  EXPECT_EQ(client.engine.metrics().wakes.value(), 5u);
}

TEST(EngineSleep, AllWhoWaitAreServed) {
  FakeClient client(sleepy());
  wait_asleep(client);
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 50; ++i) requests.push_back(client.submit(story(i), 5));
  client.read_to_end();
  for (const RequestPtr& request : requests) EXPECT_EQ(client.of(request).text, answer_alone(*request).text);
}

TEST(EngineSleep, AModelThatHasGoneFailsItsRequestsUntilItIsBack) {
  FakeClient client(sleepy());
  wait_asleep(client);
  client.broken = true;
  for (int i = 0; i < 3; ++i) {
    const RequestPtr request = client.submit(story(i), 5);
    client.read_to_end(request);
    EXPECT_EQ(client.of(request).last.reason, FinishReason::error);
    EXPECT_EQ(client.of(request).last.error.code, ErrorCode::model_failure);
  }
  client.broken = false;
  const RequestPtr request = client.submit(story(1), 5);
  client.read_to_end(request);
  EXPECT_EQ(client.of(request).text, answer_alone(*request).text);
}

TEST(EngineSleep, CancelsAndTheEndDoNotNeedTheModel) {
  for (int i = 0; i < 20; ++i) {
    FakeClient client(sleepy());
    wait_asleep(client);
    client.engine.cancel(RequestId{99});
    EXPECT_EQ(*client.engine.forget({}), 0u);
    EXPECT_TRUE(client.engine.sleeping());
  }
}

ClientConfig wakeful() {
  ClientConfig config = sleepy();
  config.engine.sleep_after = {};
  config.can_sleep = true;
  return config;
}

TEST(EngineSleep, RestsWhenItIsToldAndHasNothingToDo) {
  FakeClient client(wakeful());
  const RequestPtr request = client.submit(story(1), 20);
  client.engine.rest();
  client.read_to_end(request);
  wait_asleep(client);
  EXPECT_EQ(client.of(request).text, answer_alone(*request).text);
  const RequestPtr next = client.submit(story(2), 20);
  client.read_to_end(next);
  EXPECT_EQ(client.of(next).text, answer_alone(*next).text);
  EXPECT_FALSE(client.engine.sleeping()) << "it was told once";
  EXPECT_EQ(client.engine.metrics().wakes.value(), 1U);
}

TEST(EngineSleep, WakesWhenItIsTold) {
  FakeClient client(wakeful());
  client.engine.wake();
  client.engine.rest();
  wait_asleep(client);
  client.broken = true;
  client.engine.wake();
  while (client.engine.metrics().failed_wakes.value() == 0) std::this_thread::yield();
  client.broken = false;
  client.engine.wake();
  while (client.engine.sleeping()) std::this_thread::yield();
  EXPECT_EQ(client.engine.metrics().wakes.value(), 1U);
}

// Aborts come from other threads at any time, also while the model is made or freed.
TEST(EngineSleep, CancelsThatCrossTheWakingHarmNoRequest) {
  FakeClient client(sleepy());
  for (int i = 0; i < 100; ++i) {
    if (i % 3 == 0) wait_asleep(client);
    const RequestPtr request = client.submit(story(i), 5);
    client.engine.cancel(request->id);
    client.read_to_end(request);
  }
  const RequestPtr last = client.submit(story(1), 5);
  client.read_to_end(last);
  EXPECT_EQ(client.of(last).text, answer_alone(*last).text);
}

}  // namespace
}  // namespace chasqui
