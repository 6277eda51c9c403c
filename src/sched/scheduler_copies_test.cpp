// Copies out of slots and into them: what the streams notice of them, and what stays in slots instead.
#include <algorithm>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

constexpr TokenCount kPieceBlock = 16;

SchedulerConfig in_pieces(std::int32_t slots, std::size_t bytes = 1 << 22) {
  SchedulerConfig config = with_cache(streams(slots, 512, 4096), bytes);
  config.reuse.kv_block = kPieceBlock;
  config.reuse.kv_token_bytes = sizeof(FakeToken);
  return config;
}

FakeWorker::Ask long_prompt(TokenCount prompt = 3000, std::uint64_t family = 0) {
  return {.prompt = prompt, .max_tokens = 2, .shared = prompt, .family = family};
}

class SchedulerCopies : public testing::Test {
 protected:
  static void cost(FakeWorker& worker) {
    worker.step_cost = milliseconds(10);
    worker.row_cost = microseconds(100);
    worker.save_cost = microseconds(200);  // of 3,000 tokens: 600 ms
    worker.copy_cost = microseconds(200);
    worker.copies_take_time = true;
  }
  static const CachedSlots::Stats& slots(FakeWorker& worker) { return worker.scheduler.reuse().slots().stats; }
};

// A stream of 600 tokens, and beside it what `others` adds. Returns the stream's longest gap.
template <class Others>
Duration gap_beside(FakeWorker& worker, Others others) {
  worker.add(1, {.prompt = 10, .max_tokens = 600});
  worker.step();
  others();
  worker.run_to_end();
  return worker.of(1).gap_max;
}

TEST_F(SchedulerCopies, OfALongSequenceThatIsNeededDelayAStreamByAPartOfItsStepsOnly) {
  Duration without{};
  for (const bool copies : {false, true}) {
    SchedulerConfig config = in_pieces(4);
    config.reuse.slots_ready = copies ? 4 : 0;
    FakeWorker worker(config);
    cost(worker);
    const Duration gap = gap_beside(worker, [&] { worker.add(2, long_prompt()); });
    EXPECT_EQ(worker.model.saves() > 5, copies);
    if (!copies) without = gap;
    EXPECT_LE(gap, without + without / 2);
  }
}

// 3,000 tokens, the first 2,900 of which others have, too.
FakeWorker::Ask long_fork() { return {.prompt = 3000, .max_tokens = 2, .shared = 2900}; }

TEST_F(SchedulerCopies, OfALongPrefixDelayAStreamByAPartOfItsStepsOnly) {
  enum class From { nowhere, slot, memory };
  Duration without{};
  for (const From from : {From::nowhere, From::slot, From::memory}) {
    FakeWorker worker(in_pieces(4));
    cost(worker);
    if (from != From::nowhere) {
      worker.add(3, long_fork());
      worker.run_to_end();
    }
    if (from == From::memory) {
      worker.scheduler.copy_slots_out(worker.clock.now());
      for (std::uint64_t id = 4; id <= 7; ++id) worker.add(id, {.prompt = 100, .max_tokens = 20});
      worker.run_to_end();
    }
    const Duration gap = gap_beside(worker, [&] { worker.add(2, long_fork()); });
    if (from == From::nowhere) without = gap;
    EXPECT_EQ(worker.cached(2), from == From::nowhere ? 0 : 2900);
    EXPECT_EQ(worker.model.copies(), from == From::slot ? 1u : 0u);
    EXPECT_EQ(worker.model.restores(), from == From::memory ? 1u : 0u);
    EXPECT_EQ(worker.model.pieces() > 5, from != From::nowhere);
    EXPECT_LE(gap, without + without / 2);
  }
}

TEST_F(SchedulerCopies, AreNotMadeWhileThereAreFreeSlots) {
  SchedulerConfig config = in_pieces(8);
  config.reuse.slots_ready = 1;
  FakeWorker worker(config);
  cost(worker);
  for (std::uint64_t id = 1; id <= 7; ++id) {
    worker.add(id, {.prompt = 100, .max_tokens = 20});
    worker.run_to_end();
  }
  EXPECT_EQ(worker.model.saves() + worker.model.restores() + worker.model.copies(), 0u);
  EXPECT_EQ(worker.scheduler.ledger().slots_cached(), 7);
  worker.add(8, {.prompt = 100, .max_tokens = 20});
  worker.run_to_end();
  EXPECT_EQ(slots(worker).copied_out, 1u) << "one is copied out before its slot is needed";
  worker.add(9, {.prompt = 100, .max_tokens = 20});
  EXPECT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u) << "it waits for no copy";
  worker.run_to_end();
  EXPECT_EQ(slots(worker).dropped, 1u);
}

TEST_F(SchedulerCopies, TheNextTurnGoesOnInPlace) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.add(1, {.prompt = 1000, .max_tokens = 20});
  worker.run_to_end();
  for (std::uint64_t id = 2; id <= 5; ++id) {
    worker.add_turn(id, id - 1, 30, 20);
    worker.run_to_end();
    EXPECT_EQ(worker.model.prompt_rows(id), 31) << "what is new, and the token that was sampled last";
  }
  EXPECT_EQ(worker.model.saves() + worker.model.restores() + worker.model.copies(), 0u);
  EXPECT_EQ(worker.model.reuses(), 4u);
  EXPECT_EQ(worker.scheduler.ledger().slots_cached(), 1);
}

TEST_F(SchedulerCopies, AnAnswerIsGivenAgainInPlace) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  for (const std::uint64_t id : {1, 2}) {
    worker.add(id, {.prompt = 1000, .max_tokens = 20, .shared = 1000});
    worker.run_to_end();
  }
  EXPECT_EQ(worker.cached(2), 999);
  EXPECT_EQ(worker.model.reuses(), 1u);
  EXPECT_EQ(worker.of(1).text, worker.of(2).text);
}

TEST_F(SchedulerCopies, OfAPrefixLeaveTheSlotAsItIs) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  for (const std::uint64_t id : {1, 2}) {
    worker.add(id, {.prompt = 1000, .max_tokens = 20, .shared = 900});
    worker.run_to_end();
  }
  EXPECT_EQ(worker.cached(2), 900);
  EXPECT_EQ(worker.model.copies(), 1u);
  EXPECT_EQ(worker.model.reuses(), 0u);
  worker.add_turn(3, 1, 10, 5);
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(3), 11) << "what the first one had is there still";
}

// What is leased cannot be evicted, and a cache of a few long snapshots would keep and read nothing more.
TEST_F(SchedulerCopies, EndTheirLeases) {
  FakeWorker worker(in_pieces(2));
  const std::vector<Token> tokens = test_prompt(1000, 1'000'000);  // of FakeWorker::Ask::shared
  const KvSnapshotPtr kv = fake_blocks({RequestId{1}}, tokens, kPieceBlock, sizeof(FakeToken));
  ASSERT_TRUE(worker.scheduler.adopt_slot(0, {}, {.order = 9, .tokens = tokens, .kv = kv}, worker.clock.now()));
  worker.add(1, {.prompt = 1040, .max_tokens = 2, .shared = 1000});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(1), 1000);
  EXPECT_GT(worker.model.pieces(), 0u);
  EXPECT_EQ(kv.use_count(), 2) << "this one, and that of the cache";
}

TEST_F(SchedulerCopies, OfTheSamePrefixAreStoredOnce) {
  SchedulerConfig config = in_pieces(4);
  config.reuse.slots_ready = 4;
  FakeWorker worker(config);
  cost(worker);
  std::vector<std::size_t> bytes;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    FakeWorker::Ask ask = long_prompt();
    ask.prompt += 40;  // of its own
    worker.add(id, ask);
    worker.run_to_end();
    bytes.push_back(worker.scheduler.reuse().cache_stats().bytes);
  }
  EXPECT_GT(bytes[0], 0u);
  EXPECT_LT(bytes[3], bytes[0] + bytes[0] / 10);
}

TEST_F(SchedulerCopies, ARequestWithoutAFreeSlotWaitsForACopyAndNoSequenceLosesItsSlot) {
  FakeWorker worker(in_pieces(2));
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 2000});
  worker.add(2, long_prompt());
  while (worker.of(2).finished == 0) worker.step();
  EXPECT_EQ(worker.scheduler.ledger().slots_used(), 1);
  EXPECT_EQ(worker.scheduler.ledger().slots_cached(), 1);
  worker.add(3, long_prompt(100, 7));
  worker.step();
  EXPECT_EQ(worker.scheduler.running(), 1u);
  while (worker.of(3).finished == 0) worker.step();
  EXPECT_EQ(worker.scheduler.preemptions(), 0u);
  EXPECT_EQ(slots(worker).copied_out, 1u);
  worker.add(4, long_prompt());
  while (worker.of(4).finished == 0) worker.step();
  EXPECT_EQ(worker.cached(4), 2999);
}

// To start without it makes a slow way into the slots look a little quicker, so that it is tried again one day; to wait
// does not.
TEST_F(SchedulerCopies, ARequestThatWaitsForASlotDoesNotAskAgainForWhatIsTooSlow) {
  FakeWorker worker(in_pieces(2));
  cost(worker);
  worker.copy_cost = milliseconds(5);
  worker.add(1, long_fork());
  worker.run_to_end();
  worker.scheduler.copy_slots_out(worker.clock.now());
  for (std::uint64_t id = 2; id <= 3; ++id) worker.add(id, {.prompt = 100, .max_tokens = 20});
  worker.run_to_end();
  worker.add(4, long_fork());
  worker.run_to_end();
  ASSERT_EQ(worker.cached(4), 2900);
  for (std::uint64_t id = 5; id <= 6; ++id) worker.add(id, long_prompt(3000, id));
  worker.run_to_end();
  worker.add(7, {.prompt = 10, .max_tokens = 600});
  worker.step();
  const double slow = worker.scheduler.reuse().restore_seconds(1);
  worker.add(8, long_fork());
  int waited = 0;
  while (worker.scheduler.waiting() > 0) {
    EXPECT_EQ(worker.scheduler.reuse().restore_seconds(1), slow) << "step " << waited;
    ASSERT_TRUE(worker.step());
    ++waited;
  }
  EXPECT_GT(waited, 3);
  EXPECT_LT(worker.scheduler.reuse().restore_seconds(1), slow);
  worker.run_to_end();
  EXPECT_EQ(worker.cached(8), 0);
}

TEST_F(SchedulerCopies, WhoTakesASlotThatIsBeingCopiedOutEndsTheCopy) {
  SchedulerConfig config = in_pieces(4);
  config.reuse.slots_ready = 4;
  FakeWorker worker(config);
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 2000});
  worker.add(2, long_prompt());
  while (worker.of(2).finished == 0) worker.step();
  worker.step();
  worker.step();
  EXPECT_TRUE(worker.scheduler.reuse().has_pieces());
  worker.add(3, long_prompt());
  worker.step();
  EXPECT_EQ(worker.model.reuses(), 1u);
  EXPECT_FALSE(worker.scheduler.reuse().has_pieces());
  while (worker.of(3).finished == 0) worker.step();
  EXPECT_EQ(worker.cached(3), 2999);
}

TEST_F(SchedulerCopies, OfATenantThatIsForgottenEnd) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 500, .tenant = 1});
  FakeWorker::Ask ask = long_prompt();
  ask.tenant = 2;
  worker.add(2, ask);
  while (worker.of(2).finished == 0) worker.step();
  worker.scheduler.copy_slots_out(worker.clock.now());
  worker.step();
  EXPECT_EQ(worker.scheduler.forget_tenant(worker.of(2).request->tenant), 1u);
  EXPECT_FALSE(worker.scheduler.reuse().has_pieces());
  EXPECT_EQ(worker.scheduler.ledger().slots_used(), 1);
  EXPECT_EQ(worker.scheduler.ledger().slots_cached(), 0);
  ask.prompt = 3100;
  worker.add(3, ask);
  worker.run_to_end();
  EXPECT_EQ(worker.cached(3), 0);
}

TEST_F(SchedulerCopies, ASlotOfATenantThatIsForgottenStaysWhileItIsCopiedFrom) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 500, .tenant = 1});
  FakeWorker::Ask ask = long_fork();
  ask.tenant = 2;
  worker.add(2, ask);
  while (worker.of(2).finished == 0) worker.step();
  worker.add(3, ask);
  worker.step();
  worker.step();
  EXPECT_GT(worker.model.pieces(), 0u);
  EXPECT_EQ(worker.model.copies(), 0u) << "not all of it yet";
  worker.scheduler.forget_tenant(worker.of(2).request->tenant);
  EXPECT_EQ(worker.scheduler.ledger().slots_cached(), 1);
  while (worker.of(3).finished == 0) worker.step();
  EXPECT_EQ(worker.cached(3), 2900);
  worker.run_to_end();
}

TEST_F(SchedulerCopies, ThatFailAreNotTriedAgain) {
  SchedulerConfig config = in_pieces(2);
  FakeWorker worker(config);
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 500});
  worker.add(2, long_prompt());
  while (worker.of(2).finished == 0) worker.step();
  worker.model.saves_to_fail = 1;
  worker.add(3, long_prompt(100, 7));
  worker.run_to_end();
  EXPECT_EQ(worker.model.saves(), 1u);
  worker.add(4, long_prompt());
  worker.run_to_end();
  EXPECT_EQ(worker.cached(4), 0) << "nothing of it was kept";
}

TEST_F(SchedulerCopies, WhoLeavesWhileItsPrefixComesLeavesNothingBehind) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.copy_cost = microseconds(50);  // quicker than to compute it
  worker.add(1, {.prompt = 10, .max_tokens = 500});
  worker.add(2, long_fork());
  while (worker.of(2).finished == 0) worker.step();
  worker.add(3, long_fork());
  worker.step();
  worker.step();
  EXPECT_GT(worker.model.pieces(), 0u);
  worker.cancel(3);
  EXPECT_EQ(worker.scheduler.ledger().slots_used(), 1);
  worker.add(4, long_fork());
  worker.run_to_end();
  EXPECT_EQ(worker.cached(4), 2900);
}

TEST_F(SchedulerCopies, WhatTheModelHasForgottenIsFoundNoMore) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.add(1, {.prompt = 100, .max_tokens = 5, .shared = 100});
  worker.run_to_end();
  worker.scheduler.copy_slots_out(worker.clock.now());
  while (worker.scheduler.reuse().has_left()) worker.step();
  worker.scheduler.slots_were_emptied();
  EXPECT_EQ(worker.scheduler.ledger().slots_cached(), 0);
  EXPECT_EQ(worker.scheduler.reuse().cache_stats().entries, 1u);
}

// Slots that hold something lie between streams: either what is in them goes elsewhere, or streams stay where they are.
TEST_F(SchedulerCopies, ACachedSlotBetweenStreamsCostsNoPass) {
  SchedulerConfig config = in_pieces(4);
  config.dense_slots = true;
  config.exchanges = true;
  FakeWorker worker(config);
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 200});
  worker.add(2, {.prompt = 10, .max_tokens = 20});
  worker.add(3, {.prompt = 10, .max_tokens = 200});
  worker.run_until_finished(2);
  EXPECT_EQ(worker.scheduler.ledger().slots_cached(), 1);
  std::int32_t passes = 0;
  for (int steps = 0; steps < 20; ++steps) {
    ASSERT_TRUE(worker.step());
    passes = std::max(passes, worker.batch.passes);
  }
  EXPECT_EQ(passes, 1);
  worker.run_to_end();
}

}  // namespace
}  // namespace chasqui
