#include "sched/cached_slots.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr PrefixKey kMine{1, 0};
constexpr PrefixKey kOther{2, 0};

class CachedSlotsTest : public testing::Test {
 protected:
  void add(std::int32_t slot, PrefixKey key, TokenCount length, std::uint64_t family, bool safe = false) {
    slots_.add({.request = RequestId{1},
                .key = key,
                .slot = SlotId{slot},
                .tokens = test_prompt(length, family),
                .prompt = length,
                .used = now_,
                .safe = safe});
    now_ += seconds(1);
  }
  std::pair<std::int32_t, TokenCount> match(PrefixKey key, TokenCount length, std::uint64_t family) const {
    const std::vector<Token> tokens = test_prompt(length, family);
    const auto [kept, common] = slots_.match(key, tokens, length - 1);
    return {kept != nullptr ? kept->slot.value : -1, common};
  }
  std::int32_t least(SlotId except = SlotId{}) const {
    const CachedSlots::Kept* kept = slots_.least_valuable(now_, except);
    return kept != nullptr ? kept->slot.value : -1;
  }

  CachedSlots slots_;
  TimePoint now_ = TimePoint{} + seconds(100);
};

TEST_F(CachedSlotsTest, AreFoundByTheirTokens) {
  add(3, kMine, 50, 1);
  add(5, kMine, 80, 1);
  add(7, kMine, 90, 2);
  EXPECT_EQ(match(kMine, 100, 1), std::pair(5, 80));
  EXPECT_EQ(match(kMine, 40, 1), std::pair(3, 39)) << "of those that serve as much, the one with least beyond it";
  EXPECT_EQ(match(kMine, 100, 2), std::pair(7, 90));
  EXPECT_EQ(match(kOther, 100, 1), std::pair(-1, 0));
}

TEST_F(CachedSlotsTest, TheLeastValuableGoesFirst) {
  add(1, kMine, 80, 1, true);
  add(2, kMine, 80, 2, true);
  add(3, kMine, 8, 3, true);
  add(4, kMine, 2, 4);
  EXPECT_EQ(least(), 3) << "short ones are computed again soon; the shortest is nowhere else";
  EXPECT_EQ(least(SlotId{3}), 1) << "the oldest of equals";
  slots_.find(SlotId{1})->readers = 1;
  EXPECT_EQ(least(SlotId{3}), 2);
  EXPECT_EQ(slots_.ready(), 2u);
  EXPECT_EQ(slots_.least_unsafe(now_)->slot, SlotId{4});
  slots_.find(SlotId{4})->copying = true;
  EXPECT_EQ(slots_.least_unsafe(now_), nullptr);
}

TEST_F(CachedSlotsTest, OfATenantAreForgotten) {
  add(1, kMine, 80, 1, true);
  add(2, kMine, 80, 2);
  add(3, kMine, 80, 3);
  add(4, kOther, 80, 1);
  slots_.find(SlotId{3})->readers = 1;
  std::vector<SlotId> gone;
  EXPECT_EQ(slots_.forget(kMine.tenant, gone), 2u) << "the others are snapshots as well";
  EXPECT_EQ(gone, (std::vector<SlotId>{SlotId{1}, SlotId{2}}));
  EXPECT_EQ(slots_.size(), 2u) << "one is being copied from";
  EXPECT_EQ(match(kMine, 100, 3), std::pair(-1, 0)) << "but it is found no more";
  EXPECT_EQ(match(kOther, 100, 1), std::pair(4, 80));
  slots_.find(SlotId{3})->readers = 0;
  EXPECT_EQ(least(), 3);
}

}  // namespace
}  // namespace chasqui
