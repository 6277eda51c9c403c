// The same request is computed in the same batches: where it is alone, whatever was measured before; and where it is
// deterministic, in any company and whatever is in the cache.
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "core/checkpoints.h"
#include "sched/fake_worker.h"

namespace chasqui {
namespace {

// Rows of each batch in which the request had a part.
std::vector<std::size_t> batches_of(FakeWorker& worker, std::uint64_t id) {
  std::vector<std::size_t> rows;
  while (!worker.finished(id)) {
    if (!worker.step()) break;
    if (worker.has_part(id)) rows.push_back(worker.batch.rows.size());
  }
  return rows;
}

TEST(Repeatable, ARequestThatIsAloneIsComputedInTheSameBatchesWhateverWasMeasured) {
  for (const SchedulerConfig& config : {streams(4, 512, 3000), dense_streams(4, 512, 3000), one_pool(4, 3000)}) {
    SchedulerConfig with_padding = config;
    with_padding.rows_max = 512;
    FakeWorker worker(with_padding);
    std::uint64_t id = 0;
    const auto ask = [&] {
      worker.add(++id, {.prompt = 1300, .max_tokens = 300});
      return batches_of(worker, id);
    };
    const std::vector<std::size_t> first = ask();
    ASSERT_EQ(first.size(), 3 + 299u);
    EXPECT_EQ(first[0], 512u) << "also the first one ever";
    std::mt19937 random(7);
    for (int i = 0; i < 20; ++i) {
      // Company, in which steps are cut, and a machine that is faster and slower.
      worker.row_cost = milliseconds(1 + static_cast<int>(random() % 50));
      worker.step_cost = milliseconds(random() % 300);
      if (i % 2 == 0) worker.decode_cost = [](std::size_t rows) { return milliseconds(rows % 4 == 0 ? 1 : 100); };
      worker.add(++id, {.prompt = 700, .max_tokens = 4});
      ASSERT_TRUE(worker.step(i % 3 == 0 ? DecodeStatus::aborted : DecodeStatus::ok));
      worker.add(++id, {.prompt = 20, .max_tokens = 20, .service_class = ServiceClass::interactive});
      worker.add(++id, {.prompt = 900, .max_tokens = 6});
      worker.run_to_end();
      EXPECT_EQ(ask(), first) << i;
      worker.decode_cost = nullptr;
    }
  }
}

// Chunks that end at fixed positions, and single rows; in batches of its own.
void expect_fixed(const FakeWorker& worker, std::uint64_t id, TokenCount prompt) {
  if (!worker.has_part(id)) return;
  ASSERT_EQ(worker.parts.size(), 1u) << "a deterministic request shares a batch";
  ASSERT_EQ(worker.batch.padding_rows(), 0);
  const TokenCount from = worker.batch.rows.front().position;
  const TokenCount to = worker.batch.rows.back().position + 1;
  if (from >= prompt) {
    ASSERT_EQ(to, from + 1) << "what was said is computed token by token, also again";
    return;
  }
  ASSERT_EQ(from % kFixedChunk, 0) << from;
  ASSERT_EQ(to, std::min(from + kFixedChunk, prompt));
}

TEST(Repeatable, ADeterministicRequestIsComputedInTheSameBatchesInAnyCompanyAndWithAnyCache) {
  for (const auto& [dense, in_blocks] : {std::pair(true, false), std::pair(false, false), std::pair(true, true)}) {
    SchedulerConfig config = with_cache(dense ? dense_streams(3, 512, 2000) : streams(3, 512, 2000));
    if (in_blocks) config.reuse.kv_block = 16;
    if (in_blocks) config.reuse.kv_token_bytes = sizeof(FakeToken);
    FakeWorker worker(config);
    std::mt19937 random(11);
    std::map<std::uint64_t, TokenCount> fixed;
    std::uint64_t id = 0;
    TokenCount cached = 0;
    for (int i = 0; i < 400; ++i) {
      FakeWorker::Ask ask;
      ask.prompt = 20 + static_cast<TokenCount>(random() % 900);
      ask.shared = std::min(ask.prompt, static_cast<TokenCount>(random() % 700));
      ask.family = random() % 2;
      ask.max_tokens = 1 + static_cast<std::int64_t>(random() % 30);
      ask.deterministic = random() % 3 == 0;
      ask.service_class = static_cast<ServiceClass>(random() % 3);
      worker.add(++id, ask);
      if (ask.deterministic) fixed.emplace(id, ask.prompt);
      for (std::uint64_t steps = random() % 25; steps > 0 && worker.step(); --steps) {
        for (const SlotRestore& restore : worker.batch.restores) {
          if (!fixed.contains(restore.request.value)) continue;
          ASSERT_EQ(restore.keep % kFixedChunk, 0);
        }
        for (const auto& [request, prompt] : fixed) expect_fixed(worker, request, prompt);
        if (testing::Test::HasFatalFailure()) return;
      }
      worker.row_cost = milliseconds(1 + static_cast<int>(random() % 20));
    }
    worker.run_to_end();
    for (const auto& [request, prompt] : fixed) cached += worker.cached(request);
    EXPECT_GT(cached, 1000) << "nothing was brought back";
    EXPECT_GT(worker.scheduler.preemptions(), 0u);
  }
}

TEST(Repeatable, WhatOthersHaveComputedIsOfNoUseToADeterministicRequest) {
  FakeWorker worker(with_cache(streams(2, 512, 2000)));
  const FakeWorker::Ask plain{.prompt = 600, .max_tokens = 3, .shared = 600};
  FakeWorker::Ask fixed = plain;
  fixed.deterministic = true;
  std::uint64_t id = 0;
  const auto cached = [&](const FakeWorker::Ask& ask) {
    worker.add(++id, ask);
    worker.run_to_end();
    return worker.cached(id);
  };
  EXPECT_EQ(cached(plain), 0);
  EXPECT_EQ(cached(fixed), 0);
  EXPECT_EQ(cached(fixed), 512);
  EXPECT_EQ(cached(plain), 599);
  const std::uint64_t kept = worker.scheduler.reuse().cache_stats().insertions;
  EXPECT_EQ(cached(fixed), 512);
  EXPECT_EQ(worker.scheduler.reuse().cache_stats().insertions, kept) << "it is there already";
}

TEST(Repeatable, StatesThatAreUsedWholeAreNotBroughtBack) {
  SchedulerConfig config = with_cache(streams(2, 512, 2000));
  config.reuse.cache.cut_anywhere = false;
  FakeWorker worker(config);
  worker.checkpoint_every = 256;
  for (std::uint64_t id = 1; id <= 2; ++id) {
    worker.add(id, {.prompt = 600, .max_tokens = 3, .shared = 600, .deterministic = true});
    worker.run_to_end();
    EXPECT_EQ(worker.cached(id), 0);
  }
  EXPECT_EQ(worker.scheduler.reuse().cache_stats().insertions, 0u);
}

}  // namespace
}  // namespace chasqui
