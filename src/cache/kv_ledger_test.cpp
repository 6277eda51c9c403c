#include "cache/kv_ledger.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr KvLedger::Layout kStreams{4, 400, 100, false};
constexpr KvLedger::Layout kUnified{4, 100, 100, true};

TEST(KvLedger, StartsEmpty) {
  const KvLedger ledger(kStreams);
  EXPECT_EQ(ledger.slots_total(), 4);
  EXPECT_EQ(ledger.cells_total(), 400);
  EXPECT_EQ(ledger.slots_used(), 0);
  EXPECT_EQ(ledger.cells_used(), 0);
  EXPECT_EQ(ledger.cells_promised(), 0);
  EXPECT_TRUE(ledger.conserved());
}

TEST(KvLedger, GivesTheLowestFreeSlotSoThatActiveIdsStayDense) {
  KvLedger ledger(kStreams);
  for (const int expected : {0, 1, 2, 3}) EXPECT_EQ(ledger.take(10), SlotId{expected});
  ledger.release(SlotId{2});
  ledger.release(SlotId{1});
  EXPECT_EQ(ledger.take(10), SlotId{1});
  EXPECT_EQ(ledger.take(10), SlotId{2});
}

TEST(KvLedger, HasNoMoreSlotsThanItHas) {
  KvLedger ledger(kStreams);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ledger.take(100).has_value());
  EXPECT_FALSE(ledger.take(1).has_value());
  EXPECT_TRUE(ledger.conserved());
  ledger.release(SlotId{0});
  EXPECT_TRUE(ledger.take(100).has_value());
}

TEST(KvLedger, InStreamsEverySlotHasItsOwnCells) {
  KvLedger ledger(kStreams);
  EXPECT_TRUE(ledger.take(100).has_value());
  EXPECT_TRUE(ledger.take(100).has_value()) << "a full stream takes nothing from another";
  EXPECT_EQ(ledger.cells_promised(), 200);
}

TEST(KvLedger, InOnePoolCellsRunOutBeforeSlotsDo) {
  KvLedger ledger(kUnified);
  EXPECT_TRUE(ledger.take(60).has_value());
  EXPECT_FALSE(ledger.take(41).has_value());
  EXPECT_EQ(ledger.slots_used(), 1) << "a refusal changes nothing";
  EXPECT_EQ(ledger.cells_promised(), 60);
  EXPECT_TRUE(ledger.take(40).has_value());
  EXPECT_FALSE(ledger.take(1).has_value());
  ledger.release(SlotId{0});
  EXPECT_TRUE(ledger.take(60).has_value());
}

TEST(KvLedger, AReleaseGivesBackWhatWasPromisedNotOnlyWhatWasUsed) {
  KvLedger ledger(kUnified);
  const auto slot = ledger.take(100);
  ledger.use(*slot, 30);
  EXPECT_EQ(ledger.cells_used(), 30);
  ledger.use(*slot, 70);
  EXPECT_EQ(ledger.cells_used(), 100);
  ledger.release(*slot);
  EXPECT_EQ(ledger.cells_used(), 0);
  EXPECT_EQ(ledger.cells_promised(), 0);
  EXPECT_TRUE(ledger.take(100).has_value());
}

TEST(KvLedgerDeathTest, RefusesUseBeyondThePromise) {
  KvLedger ledger(kStreams);
  const auto slot = ledger.take(10);
  ledger.use(*slot, 10);
  EXPECT_DEATH(ledger.use(*slot, 1), "conservation: a sequence uses more cells");
}

TEST(KvLedgerDeathTest, RefusesSlotsThatNobodyHolds) {
  KvLedger ledger(kStreams);
  const auto slot = ledger.take(10);
  ledger.release(*slot);
  EXPECT_DEATH(ledger.release(*slot), "conservation: a slot is used that nobody took");
  EXPECT_DEATH(ledger.use(*slot, 1), "conservation: a slot is used that nobody took");
  EXPECT_DEATH(ledger.release(SlotId{-1}), "check failed");
  EXPECT_DEATH(ledger.release(SlotId{4}), "check failed");
}

TEST(KvLedgerDeathTest, RefusesPromisesAndLayoutsThatCannotBeKept) {
  KvLedger ledger(kStreams);
  EXPECT_DEATH(ledger.take(101), "check failed");
  EXPECT_DEATH(KvLedger({0, 100, 100, false}), "check failed");
  EXPECT_DEATH(KvLedger({4, 399, 100, false}), "check failed");
  EXPECT_DEATH(KvLedger({4, 99, 100, true}), "progress") << "the head of the queue would wait for ever";
}

// Thousands of random takes, uses and releases, against books that the test keeps itself.
TEST(KvLedger, IsConservedWhateverHappens) {
  for (const KvLedger::Layout& layout : {kStreams, kUnified}) {
    KvLedger ledger(layout);
    std::mt19937 random(4711);
    const auto below = [&random](int n) { return static_cast<TokenCount>(random() % static_cast<unsigned>(n)); };
    struct Entry {
      TokenCount promised = -1;  // -1: free
      TokenCount used = 0;
    };
    std::vector<Entry> books(4);
    for (int i = 0; i < 20'000; ++i) {
      const SlotId slot{below(4)};
      auto& [promised, used] = books[static_cast<std::size_t>(slot.value)];
      if (below(3) == 0) {
        const TokenCount cells = below(101);
        if (const auto taken = ledger.take(cells)) books[static_cast<std::size_t>(taken->value)] = {cells, 0};
      } else if (promised >= 0 && below(2) == 0) {
        ledger.release(slot);
        promised = -1, used = 0;
      } else if (promised > used) {
        const TokenCount cells = 1 + below(promised - used);
        ledger.use(slot, cells);
        used += cells;
      }
      TokenCount all_promised = 0, all_used = 0;
      for (const auto& [p, u] : books) all_promised += std::max(p, 0), all_used += u;
      ASSERT_EQ(ledger.cells_promised(), all_promised);
      ASSERT_EQ(ledger.cells_used(), all_used);
      ASSERT_LE(all_promised, layout.cells);
      ASSERT_TRUE(ledger.conserved());
    }
  }
}

}  // namespace
}  // namespace chasqui
