#include "api/core/tenant_store.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class TenantStoreTest : public testing::Test {
 protected:
  using Value = std::shared_ptr<const int>;
  using Store = TenantStore<Value>;
  static constexpr std::size_t kLarge = Store::kFreedAtOnce + 1;

  TenantStoreTest() {
    store_.set_free_later([this](std::shared_ptr<const void> thing) { handed_over_.push_back(std::move(thing)); });
  }

  void put(const std::string& name, std::size_t bytes, TimePoint now = TimePoint()) {
    Value value = std::make_shared<const int>(1);
    values_.push_back(value);
    store_.put({1, name}, std::move(value), bytes, now);
  }
  // Values that are not freed.
  std::size_t left() const {
    std::size_t left = 0;
    for (const auto& value : values_) left += value.expired() ? 0 : 1;
    return left;
  }

  Store store_{{.entries = 2000, .tenant_bytes = 3000 * kLarge, .ttl = seconds(10)}};
  std::vector<std::weak_ptr<const int>> values_;
  std::vector<std::shared_ptr<const void>> handed_over_;
};

TEST_F(TenantStoreTest, WhatExpiresTogetherIsGoneAtOnceAndLeavesBitByBit) {
  constexpr std::size_t kMany = 3 * Store::kExpiredAtOnce;
  for (std::size_t i = 0; i < kMany; ++i) put("n" + std::to_string(i), kLarge);
  const TimePoint then = TimePoint() + seconds(10);
  EXPECT_EQ(store_.find({1, "n" + std::to_string(kMany - 1)}, then), nullptr);
  EXPECT_EQ(store_.size(), kMany - Store::kExpiredAtOnce) << "a part of them has left";
  EXPECT_EQ(left(), kMany) << "and none was freed here";
  store_.each_of(1, then, [](const Value&) { ADD_FAILURE() << "one that is over is shown"; });
  EXPECT_FALSE(store_.erase({1, "n" + std::to_string(kMany - 1)}, then));
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_EQ(store_.bytes(1), 0u);
  handed_over_.clear();
  EXPECT_EQ(left(), 0u);
}

TEST_F(TenantStoreTest, ANameWhoseTimeIsOverBeginsAnew) {
  for (std::size_t i = 0; i <= Store::kExpiredAtOnce; ++i) put("n" + std::to_string(i), 1);
  const std::string last = "n" + std::to_string(Store::kExpiredAtOnce);
  const TimePoint then = TimePoint() + seconds(10);
  put(last, 2, then);
  EXPECT_EQ(store_.size(), 1u);
  EXPECT_EQ(store_.bytes(), 2u);
  EXPECT_NE(store_.find({1, last}, then + seconds(9)), nullptr);
}

TEST_F(TenantStoreTest, WhatMakesRoomIsReplacedOrErasedIsHandedOver) {
  put("a", kLarge);
  put("a", kLarge);
  EXPECT_EQ(left(), 2u) << "the one that was replaced";
  put("b", kLarge);
  put("c", 3000 * kLarge);
  EXPECT_EQ(store_.find({1, "a"}, TimePoint()), nullptr);
  EXPECT_EQ(left(), 4u) << "those that made room";
  EXPECT_TRUE(store_.erase({1, "c"}, TimePoint()));
  EXPECT_EQ(left(), 4u);
  handed_over_.clear();
  EXPECT_EQ(left(), 0u);
}

TEST_F(TenantStoreTest, ALittleIsFreedAtOnce) {
  put("a", 100);
  EXPECT_TRUE(store_.erase({1, "a"}, TimePoint()));
  EXPECT_TRUE(handed_over_.empty());
  EXPECT_EQ(left(), 0u);
}

}  // namespace
}  // namespace chasqui
