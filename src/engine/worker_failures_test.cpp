// One of two workers fails to decode: at whichever step that is, only its own requests notice.
#include <thread>

#include <gtest/gtest.h>

#include "engine/fake_workers.h"

namespace chasqui {
namespace {

constexpr std::size_t kFailing = 0, kHealthy = 1;
constexpr int kEach = 3;  // requests of each worker

// Two workers with three requests each; the decode number `step` of the first one fails.
class FailingWorker {
 public:
  FailingWorker(std::uint64_t step, std::size_t cache_bytes) : client(config(step, cache_bytes)) {
    for (int i = 0; i < 2 * kEach; ++i) {
      requests.push_back(client.submit(chat("story " + std::to_string(i)), 30, endless));
    }
    wait_until_placed(client, 2 * kEach);  // half of them each, since neither has begun
  }
  ~FailingWorker() {
    failing.open();
    healthy.open();
  }

  std::uint64_t ended_with(std::size_t worker, FinishReason reason) {
    return client.engine.metrics(worker).requests_finished[static_cast<std::size_t>(reason)].value();
  }
  // Those that were told of the failure; each must have got the beginning of what it would have been told alone.
  std::vector<RequestPtr> failed() {
    std::vector<RequestPtr> out;
    for (const RequestPtr& request : requests) {
      const FakeClient::Answer& answer = client.of(request);
      if (answer.finished == 0 || answer.last.reason != FinishReason::error) continue;
      EXPECT_EQ(answer.last.error.code, ErrorCode::model_failure);
      EXPECT_TRUE(answer_alone(*request).text.starts_with(answer.text));
      out.push_back(request);
    }
    return out;
  }

  StepGate failing, healthy;
  FakeClient client;
  std::vector<RequestPtr> requests;

 private:
  ClientConfig config(std::uint64_t step, std::size_t cache_bytes) {
    ClientConfig out = workers(2);
    out.gates = {&failing, &healthy};
    out.fail_worker = kFailing;
    out.fail_step = step;
    out.engine.reuse.cache.bytes = cache_bytes;
    return out;
  }
};

// The first steps read prompts, one after the other; the later ones are of all three.
TEST(EngineWorkerFailures, AtAnyStepEndOnlyRequestsOfThatWorkerAndItWorksAgain) {
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    for (std::uint64_t step = 1; step <= 24; ++step) {
      SCOPED_TRACE("step " + std::to_string(step) + ", cache of " + std::to_string(cache_bytes));
      FailingWorker test(step, cache_bytes);
      FakeClient& client = test.client;
      test.failing.open();
      test.healthy.open();
      client.read_to_end();
      const auto failed = test.failed();
      EXPECT_GE(failed.size(), 1u);
      EXPECT_LE(failed.size(), static_cast<std::size_t>(kEach)) << "those of one worker at most";
      EXPECT_EQ(client.engine.metrics(kFailing).failed_steps.value(), 1u);
      EXPECT_EQ(client.engine.metrics(kHealthy).failed_steps.value(), 0u);
      EXPECT_EQ(test.ended_with(kFailing, FinishReason::error), failed.size());
      EXPECT_EQ(test.ended_with(kFailing, FinishReason::length), kEach - failed.size());
      EXPECT_EQ(test.ended_with(kHealthy, FinishReason::length), static_cast<std::uint64_t>(kEach));
      for (const RequestPtr& request : test.requests) {
        if (client.of(request).last.reason != FinishReason::error) expect_as_alone(client, request);
      }
      // A request that asks again gets all of it, from a worker that has kept nothing of what failed.
      std::vector<RequestPtr> again;
      for (int i = 0; i < 2 * kEach; ++i) {
        again.push_back(client.submit(chat("story " + std::to_string(i)), 30, endless));
      }
      client.read_to_end();
      for (const RequestPtr& request : again) expect_as_alone(client, request);
      EXPECT_GT(ended(client, kFailing), static_cast<std::uint64_t>(kEach)) << "it works again";
      for (const std::size_t worker : {kFailing, kHealthy}) {
        // What a finished sequence has left is copied out before its slot is free.
        while (client.engine.metrics(worker).kv_slots_used.value() != 0) std::this_thread::yield();
        EXPECT_EQ(client.engine.metrics(worker).kv_cells_used.value(), 0);
      }
    }
  }
}

TEST(EngineWorkerFailures, AreToldWhileTheOtherWorkerIsInsideAStepWhichGoesOn) {
  FailingWorker test(12, 0);
  FakeClient& client = test.client;
  test.healthy.allow(8);
  test.healthy.wait_inside(9);  // its streams have begun, and stand still
  test.failing.open();
  EXPECT_TRUE(client.read_until([&] { return ended(client, kFailing) == kEach && !test.failed().empty(); }));
  EXPECT_EQ(ended(client, kHealthy), 0u);
  test.healthy.open();
  client.read_to_end();
  EXPECT_EQ(test.ended_with(kHealthy, FinishReason::length), static_cast<std::uint64_t>(kEach));
  for (const RequestPtr& request : test.requests) {
    if (client.of(request).last.reason != FinishReason::error) expect_as_alone(client, request);
  }
}

}  // namespace
}  // namespace chasqui
