// Copies out of slots in pieces: what the streams notice of them, and what those who come meanwhile find.
#include <algorithm>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

constexpr TokenCount kPieceBlock = 16;

SchedulerConfig in_pieces(std::int32_t slots, std::size_t bytes = 1 << 22) {
  SchedulerConfig config = with_cache(streams(slots, 512, 4096), bytes);
  config.reuse.kv_block = kPieceBlock;
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
  }
};

TEST_F(SchedulerCopies, OfALongSequenceDelayAStreamByAPartOfItsStepsOnly) {
  Duration without{};
  for (const bool use_cache : {false, true}) {
    FakeWorker worker(in_pieces(4));
    cost(worker);
    worker.add(1, {.prompt = 10, .max_tokens = 600, .use_cache = use_cache});
    worker.step();
    FakeWorker::Ask ask = long_prompt();
    ask.use_cache = use_cache;
    worker.add(2, ask);
    worker.run_to_end();
    EXPECT_EQ(worker.model.saves() > 5, use_cache);
    const Duration gap = worker.of(1).gap_max;
    if (!use_cache) without = gap;
    EXPECT_LE(gap, without + without / 2);
  }
}

TEST_F(SchedulerCopies, AreFoundByThoseWhoComeWhileTheyAreMade) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 2000});
  worker.add(2, long_prompt());
  while (worker.of(2).finished == 0) worker.step();
  EXPECT_TRUE(worker.scheduler.reuse().has_pieces());
  worker.add(3, long_prompt());
  while (worker.of(3).finished == 0) worker.step();
  EXPECT_EQ(worker.of(3).last.usage.cached, 2999);
  EXPECT_FALSE(worker.scheduler.reuse().has_pieces());
}

TEST_F(SchedulerCopies, OfTheSamePrefixAreMadeOnce) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  std::vector<std::size_t> bytes;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    FakeWorker::Ask ask = long_prompt();
    ask.prompt += 40;  // of its own
    worker.add(id, ask);
    worker.run_to_end();
    bytes.push_back(worker.scheduler.reuse().cache_stats().bytes);
  }
  EXPECT_LT(bytes[3], bytes[0] + bytes[0] / 10);
}

TEST_F(SchedulerCopies, KeepTheirSlotsUntilTheyAreMade) {
  FakeWorker worker(in_pieces(2));
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 2000});
  worker.add(2, long_prompt());
  while (worker.of(2).finished == 0) worker.step();
  EXPECT_EQ(worker.scheduler.ledger().slots_used(), 2);
  EXPECT_EQ(worker.scheduler.running(), 1u);
  worker.add(3, long_prompt(100, 7));
  worker.step();
  EXPECT_EQ(worker.scheduler.running(), 1u) << "it waits for the slot, and no sequence loses one";
  while (worker.of(3).finished == 0) worker.step();
  EXPECT_EQ(worker.scheduler.preemptions(), 0u);
}

TEST_F(SchedulerCopies, OfATenantThatIsForgottenEnd) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 500, .tenant = 1});
  FakeWorker::Ask ask = long_prompt();
  ask.tenant = 2;
  worker.add(2, ask);
  while (worker.of(2).finished == 0) worker.step();
  EXPECT_EQ(worker.scheduler.forget_tenant(worker.of(2).request->tenant), 1u);
  EXPECT_FALSE(worker.scheduler.reuse().has_pieces());
  EXPECT_EQ(worker.scheduler.ledger().slots_used(), 1);
  worker.run_to_end();
}

TEST_F(SchedulerCopies, ThatFailGiveTheirSlotsBack) {
  FakeWorker worker(in_pieces(4));
  cost(worker);
  worker.add(1, {.prompt = 10, .max_tokens = 500});
  worker.add(2, long_prompt());
  while (worker.of(2).finished == 0) worker.step();
  worker.step();
  worker.model.saves_to_fail = 1;
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.ledger().slots_used(), 0);
  worker.add(3, long_prompt());
  worker.run_to_end();
  EXPECT_EQ(worker.of(3).last.usage.cached, 0) << "nothing of it was kept";
}

}  // namespace
}  // namespace chasqui
