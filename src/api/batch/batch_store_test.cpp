// Files and batches on disk: when they go by themselves, and how much a tenant has.
#include "api/batch/batch_store.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::int64_t kKept = kCountLimit<"batch_keep_seconds"> / 1000;
constexpr std::uint64_t kGone = 17;
constexpr std::uint64_t kThere = 18;

class WallClock final : public Clock {
 public:
  TimePoint now() const override { return {}; }
  std::int64_t unix_seconds() const override { return unix_; }
  std::int64_t unix_ = 1'700'000'000;
};

class BatchStoreTest : public testing::Test {
 protected:
  BatchStoreTest() {
    std::string pattern = testing::TempDir() + "store-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    store_ = std::make_unique<BatchStore>(*JobFolder::open(path_), 1 << 20, loop_, clock_);
    for (const std::uint64_t owner : {kGone, kThere}) {
      run(upload(owner));
      run(order(owner));
    }
    EXPECT_EQ(jobs(kGone) + jobs(kThere), 2u);
  }
  ~BatchStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(path_);
  }

  void run(net::Awaitable<void> work) {
    loop_.spawn(to_end(std::move(work)), "test");
    loop_.run();
  }
  net::Awaitable<void> to_end(net::Awaitable<void> work) {
    co_await std::move(work);
    loop_.stop();
  }
  net::Awaitable<void> upload(std::uint64_t owner) {
    BatchStore::Upload upload;
    upload.file.owner = owner;
    upload.file.purpose = "batch";
    upload.body = std::make_shared<const std::string>("{}");
    upload.content = *upload.body;
    const Result<StoredFilePtr> added = co_await store_->add_file(std::move(upload));
    EXPECT_TRUE(added);
  }
  net::Awaitable<void> order(std::uint64_t owner) {
    BatchJob job;
    job.id = "batch_" + std::to_string(owner);
    job.owner = owner;
    job.input_file = store_->files_of(owner).front()->id;
    const Result<BatchJobPtr> added = co_await store_->add_job(std::move(job));
    EXPECT_TRUE(added);
  }
  void end_job(std::uint64_t owner) {
    BatchJob& job = *store_->jobs_of(owner).front();
    BatchJob after = job;
    after.status = BatchStatus::completed;
    after.ended = clock_.unix_;
    store_->end_job(job, std::move(after));
  }
  // At a sweep after so many seconds.
  void sweep(std::int64_t later, bool gone) {
    clock_.unix_ += later;
    std::function<bool(std::uint64_t)> known = [gone](std::uint64_t owner) { return !gone || owner != kGone; };
    run(store_->forget_old(std::move(known)));
  }
  std::size_t files(std::uint64_t owner) const { return store_->files_of(owner).size(); }
  std::size_t jobs(std::uint64_t owner) const { return store_->jobs_of(owner).size(); }

  std::string path_;
  WallClock clock_;
  net::NetMetrics metrics_;
  net::EventLoop loop_{metrics_};
  std::unique_ptr<BatchStore> store_;
};

TEST_F(BatchStoreTest, WhatATenantWithoutAKeyHasLeftGoesAfterAMonth) {
  end_job(kThere);
  sweep(kKept / 2, true);
  sweep(kKept - 1, true);
  EXPECT_EQ(files(kGone), 1u) << "seen for a second less";
  end_job(kGone);
  sweep(1, true);
  EXPECT_EQ(files(kGone) + jobs(kGone), 0u);
  EXPECT_EQ(files(kThere), 1u) << "it does not expire";
  EXPECT_EQ(store_->folder()->names().size(), 2u) << "the file of the other one, and what is said of it";
}

TEST_F(BatchStoreTest, ABatchThatRunsKeepsItsFile) {
  sweep(0, true);
  sweep(2 * kKept, true);
  EXPECT_EQ(files(kGone) + jobs(kGone), 2u);
  end_job(kGone);
  sweep(30, true);
  EXPECT_EQ(files(kGone) + jobs(kGone), 0u);
}

TEST_F(BatchStoreTest, ResultsCountForTheShareOfTheirTenantAlone) {
  constexpr std::int64_t kHalf = kCountLimit<"batch_tenant_bytes"> / 2;
  int woken = 0;
  store_->on_room([&woken] { ++woken; });
  const std::int64_t input = static_cast<std::int64_t>(store_->files_of(kGone).front()->bytes);
  store_->charge_results(kGone, kHalf - input);
  EXPECT_FALSE(store_->is_over_share(kGone));
  store_->charge_results(kGone, input);
  EXPECT_TRUE(store_->is_over_share(kGone)) << "they count twice, beside what was uploaded";
  EXPECT_FALSE(store_->is_over_share(kThere));
  EXPECT_FALSE(store_->is_over_share(kGone + kThere)) << "a tenant that has nothing";
  EXPECT_EQ(woken, 0);
  store_->charge_results(kGone, -input);
  EXPECT_FALSE(store_->is_over_share(kGone));
  EXPECT_EQ(woken, 1) << "lines that wait for room may begin";
}

TEST_F(BatchStoreTest, AKeyThatComesBackStartsTheMonthAgain) {
  end_job(kGone);
  sweep(0, true);
  sweep(kKept - 1, false);
  sweep(1, true);
  sweep(kKept - 1, true);
  EXPECT_EQ(files(kGone), 1u);
  sweep(1, true);
  EXPECT_EQ(files(kGone), 0u);
}

}  // namespace
}  // namespace chasqui
