// What clients are told of their prompts before the first token.
#include <algorithm>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

TEST(Scheduler, TellsHowFarAPromptIsReadWhereThatIsAskedFor) {
  FakeWorker worker(streams(4, 32));
  worker.add(1, {.prompt = 70, .max_tokens = 2, .tell_progress = true});
  worker.add(2, {.prompt = 70, .max_tokens = 2});
  worker.run_to_end();
  EXPECT_EQ(worker.of(1).read.front(), 0) << "when it begins";
  EXPECT_EQ(worker.of(1).read.back(), 70);
  EXPECT_GT(worker.of(1).read.size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(worker.of(1).read));
  EXPECT_TRUE(worker.of(2).read.empty());
}

TEST(Scheduler, TellsOfEachTokenOfAPromptOnceHowLikelyItWas) {
  for (const bool dense : {false, true}) {
    SchedulerConfig config = dense ? dense_streams(4, 32) : streams(4, 32);
    config.speculation.outputs_max = 12;
    FakeWorker worker(config);
    worker.add(1, {.prompt = 20, .max_tokens = 20});
    worker.add(2, {.prompt = 50, .max_tokens = 2, .tell_prompt = true});
    worker.add(3, {.prompt = 40, .max_tokens = 0, .tell_prompt = true});
    worker.add(4, {.prompt = 30, .max_tokens = 2});
    while (worker.step()) {
      for (const BatchPart& part : worker.batch.parts) {
        EXPECT_TRUE(!part.tells || (part.rows <= 12 && worker.batch.parts.size() == 1));
      }
    }
    for (const std::uint64_t id : {2, 3}) {
      const std::vector<Token>& prompt = worker.of(id).request->prompt;
      EXPECT_EQ(worker.of(id).likely, std::vector<Token>(prompt.begin() + 1, prompt.end())) << id;
    }
    EXPECT_TRUE(worker.of(1).likely.empty());
    EXPECT_EQ(worker.of(3).tokens, 0);
  }
}

TEST(Scheduler, APromptThatIsReadAgainIsToldOfOnce) {
  SchedulerConfig config = one_pool(2, 60);
  config.speculation.outputs_max = 8;
  FakeWorker worker(config);
  worker.add(1, {.prompt = 45, .max_tokens = 2, .tell_prompt = true});
  ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 10, .max_tokens = 40, .service_class = ServiceClass::interactive});
  worker.run_to_end();
  const std::vector<Token>& prompt = worker.of(1).request->prompt;
  EXPECT_EQ(worker.of(1).likely, std::vector<Token>(prompt.begin() + 1, prompt.end()));
}

}  // namespace
}  // namespace chasqui
