#include "net/freeing_queue.h"

#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

// Tells which thread frees it.
class Parcel {
 public:
  explicit Parcel(std::vector<std::thread::id>& freed_by) : freed_by_(freed_by) {}
  ~Parcel() { freed_by_.push_back(std::this_thread::get_id()); }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

 private:
  std::vector<std::thread::id>& freed_by_;
};

class FreeingQueueTest : public testing::Test {
 protected:
  FreeingQueueTest() : loop_(metrics_) {}

  void hand_over(const FreeLater& free_later, int parcels) {
    for (int i = 0; i < parcels; ++i) free_later(std::make_shared<const Parcel>(freed_by_));
  }

  // Ends the loop once the jobs before it have run.
  Awaitable<void> end_after_jobs() {
    OffloadTerms terms;
    terms.can_wait = OffloadPool::kLong;
    auto nothing = [] {};
    co_await pool_->run(std::move(nothing), std::move(terms));
    loop_.stop();
  }

  std::vector<std::thread::id> freed_by_;
  NetMetrics metrics_;
  EventLoop loop_;
  std::optional<OffloadPool> pool_{std::in_place, loop_, OffloadOptions{.threads = 1}};
};

TEST_F(FreeingQueueTest, AnotherThreadFreesWhatIsHandedOver) {
  FreeingQueue queue(loop_, *pool_);
  hand_over(queue.free_later(), 100);
  EXPECT_TRUE(freed_by_.empty()) << "who hands it over does not free it";
  loop_.post([this] { loop_.spawn(end_after_jobs(), "end"); });
  loop_.run();
  pool_.reset();  // what it still frees is freed
  EXPECT_EQ(queue.waiting(), 0u);
  ASSERT_EQ(freed_by_.size(), 100u);
  for (const std::thread::id& thread : freed_by_) EXPECT_NE(thread, std::this_thread::get_id());
}

TEST_F(FreeingQueueTest, WhatIsTooMuchIsFreedAtOnce) {
  FreeingQueue queue(loop_, *pool_, 3);
  hand_over(queue.free_later(), 5);
  EXPECT_EQ(freed_by_.size(), 2u);
  EXPECT_EQ(queue.waiting(), 3u);
}

TEST_F(FreeingQueueTest, ThingsMayBeHandedOverAfterItHasGone) {
  std::optional<FreeingQueue> queue(std::in_place, loop_, *pool_);
  const FreeLater free_later = queue->free_later();
  hand_over(free_later, 1);
  queue.reset();
  EXPECT_EQ(freed_by_.size(), 1u) << "what waited goes with it";
  pool_.reset();
  hand_over(free_later, 1);
  EXPECT_EQ(freed_by_.size(), 2u);
}

}  // namespace
}  // namespace chasqui::net
