// Prompts with pictures and sounds: their places have steps of their own, and are shared as wholes.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_media.h"
#include "sched/fake_worker.h"

namespace chasqui {
namespace {

// All steps until nothing is left. Each batch is of tokens, or of places of one unit.
void run_to_end(FakeWorker& worker) {
  while (worker.step()) {
    const auto places = std::ranges::count_if(worker.batch.rows, [](const Row& row) { return row.token < 0; });
    if (worker.batch.unit == nullptr) {
      EXPECT_EQ(places, 0);
      continue;
    }
    const MediaUnit& unit = *worker.batch.unit;
    EXPECT_EQ(worker.batch.parts.size(), 1u);
    EXPECT_EQ(places, std::ssize(worker.batch.rows));
    EXPECT_GE(worker.batch.rows.front().position, unit.begin);
    EXPECT_LT(worker.batch.rows.back().position, unit.begin + unit.positions);
    if (!unit.causal) {
      EXPECT_EQ(std::ssize(worker.batch.rows), unit.positions);
    }
  }
}

TEST(SchedulerMedia, PlacesOfAUnitHaveStepsOfTheirOwn) {
  for (const bool dense : {false, true}) {
    FakeWorker worker(dense ? dense_streams(4, 32, 400) : streams(4, 32, 400));
    worker.add(1, 50, 40);
    worker.submit(2, FakePrompt().text(40, 2).picture(70).text(10, 3).picture(20, 2).draft(5), {});
    worker.submit(3, FakePrompt().picture(10, 5).picture(10, 6).draft(5), {});
    worker.add(4, 60, 5);
    run_to_end(worker);
    for (const std::uint64_t id : {1, 2, 3, 4}) EXPECT_EQ(worker.reason(id), FinishReason::length) << id;
    EXPECT_EQ(worker.model.prompt_rows(2), 140);
  }
}

TEST(SchedulerMedia, PlacesThatSeeEachOtherAreComputedInOneStep) {
  FakeWorker worker(streams(4, 64, 400));
  worker.row_cost = milliseconds(20);  // so long that prompts are cut into small pieces
  worker.add(1, {.prompt = 10, .max_tokens = 60, .service_class = ServiceClass::interactive});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker.step());
  worker.submit(2, FakePrompt().text(40, 2).picture(60, 1, false).text(10, 3).draft(3), {});
  run_to_end(worker);
  EXPECT_EQ(worker.reason(2), FinishReason::length);
}

TEST(SchedulerMedia, TheSamePictureIsComputedOnce) {
  FakeWorker worker(with_cache(streams(4, 32, 400)));
  for (const std::uint64_t id : {1, 2}) {
    worker.submit(id, FakePrompt().text(40, 9).picture(50).text(10, id).draft(3), {});
    run_to_end(worker);
  }
  EXPECT_EQ(worker.cached(2), 90);
  EXPECT_EQ(worker.model.prompt_rows(2), 10);
  worker.submit(3, FakePrompt().text(40, 9).picture(50, 2).text(10, 2).draft(3), {});
  run_to_end(worker);
  EXPECT_EQ(worker.cached(3), 40) << "another picture";
}

TEST(SchedulerMedia, AUnitIsReadAgainRatherThanCut) {
  FakeWorker worker(with_cache(streams(4, 32, 400)));
  const FakePrompt ends_with_it = FakePrompt().text(40, 9).picture(50);
  worker.submit(1, ends_with_it.draft(3), {});
  run_to_end(worker);
  worker.submit(2, ends_with_it.draft(3), {});
  run_to_end(worker);
  EXPECT_EQ(worker.cached(2), 40) << "the last place is computed for the logits, and so are the others";
  EXPECT_EQ(worker.of(1).text, worker.of(2).text);
}

TEST(SchedulerMedia, WhatACancelledRequestHasOfAUnitIsNotUsed) {
  FakeWorker worker(with_cache(streams(4, 32, 400)));
  const FakePrompt prompt = FakePrompt().text(40, 9).picture(100).text(5, 9);
  worker.submit(1, prompt.draft(3), {});
  while (worker.batch.unit == nullptr) ASSERT_TRUE(worker.step());
  worker.cancel(1);
  run_to_end(worker);
  worker.submit(2, prompt.draft(3), {});
  run_to_end(worker);
  EXPECT_EQ(worker.cached(2), 40);
}

TEST(SchedulerMedia, UsageTellsHowOftenItWasEncoded) {
  FakeWorker worker(with_cache(streams(4, 32, 400)));
  worker.submit(1, FakePrompt().text(40, 9).picture(50).text(1, 1).picture(40, 2).text(10, 1).draft(3), {});
  run_to_end(worker);
  EXPECT_EQ(worker.of(1).last.usage.media_encoded + worker.of(1).last.usage.media_reused, 2);
  worker.submit(2, FakePrompt().text(40, 9).picture(50).text(1, 1).picture(40, 2).text(10, 2).draft(3), {});
  run_to_end(worker);
  EXPECT_EQ(worker.of(2).last.usage.media_encoded + worker.of(2).last.usage.media_reused, 0) << "nothing was read";
}

TEST(SchedulerMedia, AUnitOutlivesPreemption) {
  FakeWorker worker(one_pool(2, 120));
  worker.submit(1, FakePrompt().text(50, 2).picture(30, 1, false).text(10, 3).draft(3), {});
  while (worker.batch.unit == nullptr) ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 40, .max_tokens = 60, .service_class = ServiceClass::interactive});
  run_to_end(worker);
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_EQ(worker.reason(2), FinishReason::length);
}

}  // namespace
}  // namespace chasqui
