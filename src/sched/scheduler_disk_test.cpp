// Requests whose prompt is in a file: they wait for it, and no others do.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_media.h"
#include "sched/fake_disk.h"
#include "sched/fake_life.h"
#include "sched/fake_worker.h"

namespace chasqui {
namespace {

SchedulerConfig with_disk(SchedulerConfig config, std::uint64_t disk_bytes = 1 << 20, std::size_t cache = 1 << 20) {
  config = with_cache(config, cache);
  config.reuse.disk = DiskLimits{.bytes = disk_bytes, .queue_bytes = cache / 4};
  return config;
}

// A worker that finds on disk what an earlier one has left there.
class DiskWorker : public FakeWorker {
 public:
  DiskWorker(const SchedulerConfig& config, FakeDisk& disk) : FakeWorker(config), disk_(disk) {
    for (const auto& [number, file] : disk.files) {
      const std::uint64_t bytes = snapshot_file_bytes(file.tokens.size(), file.kv->bytes().size());
      scheduler.found_on_disk(
          {.number = number, .bytes = bytes, .usable = true, .key = file.key, .tokens = file.tokens});
    }
  }

  const DiskTier& tier() const { return *scheduler.disk(); }
  void run_disk() {
    std::vector<DiskOrder> orders;
    for (scheduler.take_disk_orders(orders); !orders.empty(); scheduler.take_disk_orders(orders)) {
      for (DiskOutcome& outcome : disk_.carry_out(orders)) scheduler.disk_done(std::move(outcome), clock.now());
    }
  }
  // Steps and the disk in turns, until there is nothing left to do for either.
  void run_both() {
    for (int turns = 0; step() || scheduler.waits_for_disk(); ++turns) {
      run_disk();
      ASSERT_LT(turns, 10'000) << "progress";
    }
  }
  void end() {
    run_both();
    scheduler.flush_to_disk();
    run_disk();
  }

 private:
  FakeDisk& disk_;
};

class SchedulerDisk : public testing::Test {
 protected:
  SchedulerDisk() {
    DiskWorker before(with_disk(streams()), disk_);
    before.add(1, 90, 3);
    before.add(2, 90, 3);
    before.end();
    EXPECT_EQ(disk_.files.size(), 2u);
  }

  FakeDisk disk_;
};

TEST_F(SchedulerDisk, APromptWhoseFileIsNotReadInTimeIsComputed) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, 90, 3);
  EXPECT_FALSE(worker.step());
  std::vector<DiskOrder> hanging;
  worker.scheduler.take_disk_orders(hanging);
  ASSERT_EQ(hanging.size(), 1u);
  worker.clock.advance(seconds(4));
  EXPECT_FALSE(worker.step());
  worker.clock.advance(seconds(1));
  EXPECT_TRUE(worker.step()) << "nothing has come";
  worker.add(2, 90, 3);
  while (worker.step()) continue;
  EXPECT_EQ(worker.cached(1), 0);
  EXPECT_EQ(worker.cached(2), 0) << "it did not ask the disk";
  for (DiskOutcome& outcome : disk_.carry_out(hanging))
    worker.scheduler.disk_done(std::move(outcome), worker.clock.now());
  worker.run_both();
  EXPECT_TRUE(worker.scheduler.consistent());
}

TEST_F(SchedulerDisk, APromptThatIsInAFileIsReadAndNotComputed) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, 90, 3);
  EXPECT_FALSE(worker.step());
  EXPECT_TRUE(worker.scheduler.waits_for_disk());
  EXPECT_FALSE(worker.scheduler.idle());
  EXPECT_EQ(worker.scheduler.running(), 0u) << "it holds no slot";
  worker.run_both();
  EXPECT_EQ(worker.cached(1), 89);
  EXPECT_EQ(worker.model.prompt_rows(1), 1);
  EXPECT_FALSE(worker.scheduler.waits_for_disk());
}

TEST_F(SchedulerDisk, OthersGoOnWhileAFileIsRead) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, 90, 3);
  worker.add(7, 50, 3);
  ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.has_part(7));
  EXPECT_FALSE(worker.has_part(1));
  EXPECT_FALSE(worker.scheduler.waits_for_disk());
  worker.run_until_finished(7);
  EXPECT_FALSE(worker.finished(1));
  worker.run_both();
  EXPECT_EQ(worker.cached(1), 89);
}

TEST_F(SchedulerDisk, AFileThatCannotBeReadIsComputed) {
  DiskWorker worker(with_disk(streams()), disk_);
  disk_.reads_fail = true;
  worker.add(1, 90, 3);
  worker.run_both();
  EXPECT_TRUE(worker.finished(1));
  EXPECT_EQ(worker.cached(1), 0);
  EXPECT_EQ(disk_.files.size(), 1u) << "it is not tried again";
}

TEST_F(SchedulerDisk, WhatTheModelRefusesIsRemovedAndNotTriedAgain) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.model.restores_to_fail = 1;
  worker.add(1, 90, 3);
  worker.run_both();
  EXPECT_TRUE(worker.finished(1));
  EXPECT_EQ(worker.cached(1), 0);
  EXPECT_EQ(worker.model.restores_to_fail, 0) << "it was tried, or this test would prove nothing";
  EXPECT_EQ(disk_.files.size(), 1u) << "the other one";
  EXPECT_EQ(worker.tier().stats().refused, 1u);
  const auto reads = std::ranges::count(disk_.done, DiskOrder::Kind::read);
  worker.add(1001, {.prompt = 90, .shared = 0});
  worker.run_both();
  worker.end();
  EXPECT_EQ(std::ranges::count(disk_.done, DiskOrder::Kind::read), reads);
}

// It would have to be encoded, which takes far longer than its rows do.
TEST_F(SchedulerDisk, APictureIsReadThoughItsRowsAreComputedSooner) {
  const SchedulerConfig config = with_disk(streams(4, 32, 400));
  FakeDisk disk;
  DiskWorker before(config, disk);
  before.submit(1, FakePrompt().text(40, 9).picture(50).text(10, 1).draft(3), {});
  before.submit(2, FakePrompt().text(100, 5).draft(3), {});
  before.end();
  ASSERT_EQ(disk.files.size(), 2u);
  DiskWorker worker(config, disk);
  worker.row_cost = worker.step_cost = microseconds(1);
  worker.add(1, 90, 3);
  worker.run_both();
  worker.submit(2, FakePrompt().text(100, 5).draft(3), {});
  worker.submit(3, FakePrompt().text(40, 9).picture(50).text(10, 2).draft(3), {});
  worker.run_both();
  EXPECT_EQ(worker.cached(2), 0);
  EXPECT_EQ(worker.cached(3), 90);
}

// What is being written cannot leave memory: a slot that is copied out meanwhile finds no room.
TEST_F(SchedulerDisk, WhatFindsNoRoomWhileTheDiskWritesIsCopiedOutAgain) {
  SchedulerConfig config = with_disk(streams(), 1 << 20, 120 * sizeof(FakeToken));
  config.reuse.kv_block = 16;
  config.reuse.kv_token_bytes = sizeof(FakeToken);
  config.reuse.disk->queue_bytes = 1 << 20;
  FakeDisk empty;
  DiskWorker worker(config, empty);
  worker.add(1, 90, 3);
  while (worker.step()) {
  }
  std::vector<DiskOrder> orders;
  worker.scheduler.rest_disk();
  worker.scheduler.take_disk_orders(orders);
  ASSERT_FALSE(orders.empty());
  worker.add(2, {.prompt = 90, .max_tokens = 3, .family = 2});
  while (worker.step()) {
  }
  EXPECT_EQ(worker.scheduler.reuse().cache_stats().refused, 1u);
  for (DiskOrder& order : orders) {
    DiskOutcome written{.kind = order.kind, .file = order.file};
    written.kv = std::exchange(order.kv, nullptr);
    worker.scheduler.disk_done(std::move(written), worker.clock.now());
  }
  while (worker.step()) {
  }
  EXPECT_EQ(worker.scheduler.reuse().cache_stats().insertions, 2u);
  EXPECT_EQ(worker.scheduler.reuse().slots().stats.dropped, 0u);
}

TEST_F(SchedulerDisk, ARequestCancelledWhileItWaitsEndsAtOnce) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, 90, 3);
  worker.step();
  worker.cancel(1);
  EXPECT_EQ(worker.reason(1), FinishReason::cancelled);
  EXPECT_TRUE(worker.scheduler.idle());
  worker.run_disk();
  worker.add(1001, {.prompt = 90, .shared = 0});
  worker.run_both();
  EXPECT_TRUE(worker.finished(1001));
}

TEST_F(SchedulerDisk, ADeadlineThatPassesWhileAFileIsReadIsKept) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, {.prompt = 90, .timeout_ms = 10});
  worker.step();
  EXPECT_TRUE(worker.scheduler.waits_for_disk());
  worker.clock.advance(milliseconds(20));
  worker.run_disk();  // which wakes the worker
  worker.step();
  EXPECT_EQ(worker.reason(1), FinishReason::deadline);
}

TEST_F(SchedulerDisk, ARequestWithoutTheCacheDoesNotWait) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, {.prompt = 90, .use_cache = false});
  EXPECT_TRUE(worker.step());
}

TEST_F(SchedulerDisk, AnotherTenantComputes) {
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, {.prompt = 90, .tenant = 5});
  worker.run_both();
  EXPECT_EQ(worker.cached(1), 0);
}

// Conversations that fit neither into the slots nor into the cache, above a disk that is slow and fails at times.
TEST(SchedulerDiskRandom, EverybodySaysWhatTheyWouldSayAlone) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    FakeDisk disk;
    std::uint64_t id = 0;
    std::uint64_t reads = 0;
    for (int restart = 0; restart < 3; ++restart) {
      const bool unified = dice.permille(300);
      SchedulerConfig config = unified ? one_pool(dice.between(1, 4), 400) : streams(dice.between(1, 4), 32, 200);
      config.dense_slots = !unified && dice.permille(500);
      config = with_disk(config, 5000 + static_cast<std::uint64_t>(dice.below(50'000)),
                         1000 + static_cast<std::size_t>(dice.below(20'000)));
      DiskWorker worker(config, disk);
      const std::uint64_t first = id + 1;
      std::vector<DiskOrder> orders;
      std::vector<DiskOutcome> outcomes;
      const auto move_disk = [&] {
        disk.reads_fail = dice.permille(50);
        disk.writes_fail = dice.permille(50);
        worker.scheduler.take_disk_orders(orders);
        if (dice.permille(500)) {
          for (const DiskOrder& order : orders) reads += order.kind == DiskOrder::Kind::read ? 1 : 0;
          for (DiskOutcome& outcome : disk.carry_out(orders)) outcomes.push_back(std::move(outcome));
        }
        if (dice.permille(500)) {
          for (DiskOutcome& outcome : outcomes) worker.scheduler.disk_done(std::move(outcome), worker.clock.now());
          outcomes.clear();
        }
        if (worker.scheduler.idle() && dice.permille(500)) worker.scheduler.rest_disk();
      };
      for (int turn = 0; turn < 300; ++turn) {
        if (dice.permille(100)) {
          const std::int64_t length = dice.between(40, 150);
          worker.add(++id, {.prompt = static_cast<TokenCount>(length),
                            .max_tokens = dice.between(0, 20),
                            .service_class = static_cast<ServiceClass>(dice.below(3)),
                            .shared = dice.between(0, static_cast<TokenCount>(length))});
        }
        if (id >= first && dice.permille(20))
          worker.cancel(first + static_cast<std::uint64_t>(dice.below(8)) % (id - first + 1));
        worker.step();
        move_disk();
        if (testing::Test::HasFailure()) FAIL() << "seed " << seed << " restart " << restart << " turn " << turn;
      }
      for (int turns = 0; worker.step() || worker.scheduler.waits_for_disk(); ++turns) {
        move_disk();
        ASSERT_LT(turns, 20'000) << "progress, seed " << seed;
      }
      for (std::uint64_t i = first; i <= id; ++i)
        ASSERT_TRUE(worker.finished(i)) << "seed " << seed << " request " << i;
      disk.writes_fail = false;
      worker.scheduler.flush_to_disk();
      // What is ordered is carried out before the process ends, as a real thread would.
      for (int turns = 0; worker.tier().writing() || !orders.empty() || !outcomes.empty(); ++turns) {
        ASSERT_LT(turns, 1000);
        worker.scheduler.take_disk_orders(orders);
        for (DiskOutcome& outcome : disk.carry_out(orders)) outcomes.push_back(std::move(outcome));
        for (DiskOutcome& outcome : outcomes) worker.scheduler.disk_done(std::move(outcome), worker.clock.now());
        outcomes.clear();
      }
      worker.run_disk();
    }
    if (seed == 1) {
      EXPECT_GT(reads, 0u) << "or this test would prove nothing";
    }
  }
}

AdapterSetPtr some_adapters() {
  constexpr float kScales[] = {1};
  constexpr std::uint64_t kContents[] = {5};
  return make_adapter_set(kScales, kContents);
}

TEST_F(SchedulerDisk, AFileServesOnlyTheAdaptersThatItWasComputedWith) {
  {
    DiskWorker worker(with_disk(streams()), disk_);
    worker.add(1, {.prompt = 90, .adapters = some_adapters()});
    worker.run_both();
    EXPECT_EQ(worker.cached(1), 0) << "the file is of the model alone";
    worker.end();
  }
  ASSERT_EQ(disk_.files.size(), 3u);
  DiskWorker worker(with_disk(streams()), disk_);
  worker.add(1, {.prompt = 90, .adapters = some_adapters()});
  worker.run_both();
  EXPECT_EQ(worker.cached(1), 89);
  EXPECT_EQ(worker.model.prompt_rows(1), 1);
}

TEST_F(SchedulerDisk, WhereTenantsShareAFileServesOnlyItsAdapters) {
  SchedulerConfig config = with_disk(streams());
  config.reuse.shared_by_tenants = true;
  disk_.files.clear();
  {
    DiskWorker worker(config, disk_);
    worker.add(1, {.prompt = 90, .adapters = some_adapters()});
    worker.end();
  }
  ASSERT_EQ(disk_.files.size(), 1u);
  DiskWorker worker(config, disk_);
  worker.add(1, {.prompt = 90});
  worker.run_both();
  EXPECT_EQ(worker.cached(1), 0);
  DiskWorker again(config, disk_);
  again.add(1, {.prompt = 90, .adapters = some_adapters()});
  again.run_both();
  EXPECT_EQ(again.cached(1), 89);
}

TEST_F(SchedulerDisk, WhatATenantWantsForgottenIsForgottenOnDisk) {
  DiskWorker worker(with_disk(streams()), disk_);
  EXPECT_EQ(worker.scheduler.forget_tenant({.id = 7, .lasting = 777}), 0u);
  EXPECT_EQ(worker.scheduler.forget_tenant({.id = 8}), 0u) << "who leaves nothing behind has no files";
  EXPECT_EQ(worker.scheduler.forget_tenant({}), 2u);
  worker.run_disk();
  EXPECT_TRUE(disk_.files.empty());
  worker.add(1, 90, 3);
  worker.run_both();
  EXPECT_EQ(worker.cached(1), 0);
}

}  // namespace
}  // namespace chasqui
