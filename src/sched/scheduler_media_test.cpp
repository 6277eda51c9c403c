// Prompts with pictures and sounds: their places have steps of their own, and are shared as wholes.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_media.h"
#include "sched/fake_life.h"
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

SchedulerConfig encoding_apart(SchedulerConfig config) {
  config.encodes = true;
  return config;
}

TEST(SchedulerMedia, StreamsGoOnWhileAPictureIsEncoded) {
  FakeWorker worker(encoding_apart(with_cache(streams(4, 32, 400))));
  worker.encodes_at_once = false;
  worker.add(1, 10, 60);
  worker.submit(2, FakePrompt().text(40, 2).picture(70).text(10, 3).draft(3), {});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(worker.step());
  EXPECT_GT(worker.of(1).tokens, 20);
  EXPECT_EQ(worker.model.prompt_rows(2), 40) << "the text before it";
  ASSERT_EQ(worker.to_encode.size(), 1u) << "ordered once";
  EXPECT_EQ(worker.to_encode[0].begin, 40);
  worker.encodes_at_once = true;
  run_to_end(worker);
  EXPECT_EQ(worker.reason(2), FinishReason::length);
  EXPECT_EQ(worker.model.prompt_rows(2), 120);
  EXPECT_EQ(worker.of(2).last.usage.media_encoded, 1);
}

TEST(SchedulerMedia, APictureIsEncodedWhileTheTextBeforeItIsRead) {
  FakeWorker worker(encoding_apart(streams(4, 32, 400)));
  worker.submit(1, FakePrompt().text(100, 2).picture(20).draft(3), {});
  ASSERT_TRUE(worker.step());
  EXPECT_LT(worker.model.prompt_rows(1), 100);
  run_to_end(worker);
  EXPECT_EQ(worker.reason(1), FinishReason::length);
}

TEST(SchedulerMedia, WhereAllWaitForPicturesNothingIsPlanned) {
  FakeWorker worker(encoding_apart(streams(2, 32, 400)));
  worker.encodes_at_once = false;
  worker.submit(1, FakePrompt().picture(20).text(5, 1).draft(3), {});
  worker.submit(2, FakePrompt().picture(20, 2).text(5, 1).draft(3), {});
  while (worker.step()) EXPECT_TRUE(worker.batch.rows.empty());
  EXPECT_TRUE(worker.scheduler.waits_for_units());
  EXPECT_EQ(worker.to_encode.size(), 2u);
  worker.cancel(1);
  worker.add(3, 10, 3);
  while (!worker.finished(3)) ASSERT_TRUE(worker.step());
  worker.encodes_at_once = true;
  run_to_end(worker);
  EXPECT_EQ(worker.reason(2), FinishReason::length);
}

TEST(SchedulerMedia, WhatCannotBeEncodedEndsItsRequestAlone) {
  FakeWorker worker(encoding_apart(streams(4, 32, 400)));
  worker.encodes_at_once = false;
  worker.add(1, 10, 20);
  worker.submit(2, FakePrompt().picture(20).text(5, 1).draft(3), {});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(worker.step());
  const Error error{ErrorCode::model_failure, "it failed", ""};
  worker.scheduler.encoded({.request = RequestId{2}, .begin = 0, .error = error}, worker.clock.now());
  run_to_end(worker);
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_EQ(worker.reason(2), FinishReason::error);
  EXPECT_EQ(worker.of(2).last.error.message, "it failed");
}

TEST(SchedulerMedia, ASequenceThatLostItsSlotAsksAgain) {
  FakeWorker worker(encoding_apart(one_pool(2, 120)));
  worker.encodes_at_once = false;
  worker.submit(1, FakePrompt().text(50, 2).picture(30, 1, false).text(10, 3).draft(3), {});
  while (worker.step()) continue;
  ASSERT_TRUE(worker.scheduler.waits_for_units());
  worker.add(2, {.prompt = 40, .max_tokens = 60, .service_class = ServiceClass::interactive});
  while (worker.scheduler.preemptions() == 0) ASSERT_TRUE(worker.step());
  worker.encodes_at_once = true;  // also what was ordered before
  run_to_end(worker);
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_EQ(worker.reason(2), FinishReason::length);
}

FakePrompt draw_prompt(Dice& dice) {
  FakePrompt prompt;
  for (int part = dice.between(1, 3); part > 0; --part) {
    const auto content = static_cast<std::uint64_t>(dice.between(1, 4));
    if (dice.permille(500)) prompt.picture(dice.between(1, 25), content, dice.permille(700));
    prompt.text(dice.between(1, 20), content);
  }
  return prompt;
}

// Whatever is encoded when, of requests of all classes that come, leave and lose their slots: each is answered with
// what it would say alone (which FakeWorker looks at), or fails because its picture did.
void live_randomly(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Dice dice(seed);
  const std::int32_t slots = dice.between(1, 4);
  const SchedulerConfig layouts[] = {streams(slots, 32, 160), dense_streams(slots, 32, 160), one_pool(slots, 200)};
  SchedulerConfig config = layouts[dice.below(3)];
  if (dice.permille(700)) config = with_cache(config);
  if (config.reuse.cache.bytes > 0 && dice.permille(700)) {
    config.reuse.kv_block = 4;  // prefixes come in pieces
    config.reuse.cache.cut_anywhere = true;
    config.reuse.kv_token_bytes = sizeof(FakeToken);
    config.reuse.keeps_slots = !config.kv.unified;
  }
  FakeWorker worker(encoding_apart(config));
  worker.encodes_at_once = false;
  std::uint64_t asked = 0;
  std::set<std::pair<std::uint64_t, TokenCount>> encoded;  // request, where the unit begins
  for (int steps = 0; asked < 40 || !worker.scheduler.idle(); ++steps) {
    ASSERT_LT(steps, 20'000) << "progress";
    if (asked < 40 && dice.permille(150)) {
      RequestDraft draft = draw_prompt(dice).draft(dice.between(0, 12));
      draft.service_class = static_cast<ServiceClass>(dice.below(3));
      draft.tenant.id = static_cast<std::uint32_t>(dice.below(3));
      worker.submit(++asked, std::move(draft), {});
    }
    const auto recent = static_cast<std::uint64_t>(dice.below(8));
    if (asked > recent && dice.permille(20)) worker.cancel(asked - recent);
    if (!worker.to_encode.empty() && dice.permille(200)) {
      const auto which = worker.to_encode.begin() + dice.below(static_cast<std::int32_t>(worker.to_encode.size()));
      EncodingOutcome outcome{.request = which->request->id, .begin = which->begin, .fresh = true};
      if (dice.permille(50)) outcome.error = Error{ErrorCode::model_failure, "it failed", ""};
      encoded.emplace(outcome.request.value, outcome.begin);
      worker.to_encode.erase(which);
      worker.scheduler.encoded(outcome, worker.clock.now());
    }
    worker.step();
    if (const MediaUnit* const unit = worker.batch.unit) {
      EXPECT_TRUE(encoded.contains({worker.parts.front().first, unit->begin})) << "rows of what is not encoded";
    }
    ASSERT_FALSE(testing::Test::HasFailure());
    const bool waits = worker.scheduler.waits_for_units();
    EXPECT_TRUE(!worker.batch.empty() || waits || worker.scheduler.running() == 0) << "progress";
    if (waits) worker.clock.advance(milliseconds(1));
  }
}

TEST(SchedulerMedia, RandomRequestsWhateverIsEncodedWhen) {
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) live_randomly(seed);
}

}  // namespace
}  // namespace chasqui
