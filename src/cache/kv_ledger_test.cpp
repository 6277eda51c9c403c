#include "cache/kv_ledger.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
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
  EXPECT_EQ(ledger.cells_reserved(), 0);
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
  EXPECT_EQ(ledger.cells_reserved(), 200);
}

TEST(KvLedger, InOnePoolCellsRunOutBeforeSlotsDo) {
  KvLedger ledger(kUnified);
  EXPECT_TRUE(ledger.take(60).has_value());
  EXPECT_FALSE(ledger.take(41).has_value());
  EXPECT_EQ(ledger.slots_used(), 1) << "a refusal changes nothing";
  EXPECT_EQ(ledger.cells_reserved(), 60);
  EXPECT_TRUE(ledger.take(40).has_value());
  EXPECT_FALSE(ledger.take(1).has_value());
  ledger.release(SlotId{0});
  EXPECT_TRUE(ledger.take(60).has_value());
}

TEST(KvLedger, AReleaseGivesBackWhatWasReservedNotOnlyWhatWasUsed) {
  KvLedger ledger(kUnified);
  const auto slot = ledger.take(100);
  ledger.use(*slot, 30);
  EXPECT_EQ(ledger.cells_used(), 30);
  ledger.use(*slot, 70);
  EXPECT_EQ(ledger.cells_used(), 100);
  ledger.release(*slot);
  EXPECT_EQ(ledger.cells_used(), 0);
  EXPECT_EQ(ledger.cells_reserved(), 0);
  EXPECT_TRUE(ledger.take(100).has_value());
}

TEST(KvLedger, WhatIsNotInTheModelAfterAllStaysReserved) {
  KvLedger ledger(kUnified);
  const auto slot = ledger.take(60);
  const auto other = ledger.take(20);
  ledger.use(*slot, 50);
  ledger.use(*other, 5);
  ledger.unuse(*slot);
  EXPECT_EQ(ledger.cells_used(), 5);
  EXPECT_EQ(ledger.reserved(*slot), 60);
  EXPECT_TRUE(ledger.conserved());
  ledger.use(*slot, 60);
  EXPECT_TRUE(ledger.conserved());
}

TEST(KvLedger, InStreamsAReservationGrowsToTheWholeStream) {
  KvLedger ledger(kStreams);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ledger.take(10).has_value());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ledger.reserve(SlotId{i}, 100));
  EXPECT_EQ(ledger.cells_reserved(), 400);
  EXPECT_TRUE(ledger.conserved());
}

TEST(KvLedger, InOnePoolAReservationGrowsWhileThereAreCells) {
  KvLedger ledger(kUnified);
  const auto first = ledger.take(60);
  const auto second = ledger.take(30);
  EXPECT_EQ(ledger.cells_free(), 10);
  EXPECT_TRUE(ledger.reserve(*first, 70)) << "the last cell too";
  EXPECT_EQ(ledger.cells_free(), 0);
  EXPECT_FALSE(ledger.reserve(*second, 31));
  EXPECT_EQ(ledger.reserved(*second), 30) << "a refusal changes nothing";
  EXPECT_EQ(ledger.cells_reserved(), 100);
  ledger.release(*first);
  EXPECT_TRUE(ledger.reserve(*second, 31));
  EXPECT_EQ(ledger.cells_free(), 69);
}

TEST(KvLedger, AReservationDoesNotShrink) {
  KvLedger ledger(kUnified);
  const auto slot = ledger.take(60);
  EXPECT_TRUE(ledger.reserve(*slot, 10));
  EXPECT_EQ(ledger.reserved(*slot), 60);
  EXPECT_EQ(ledger.cells_reserved(), 60);
}

TEST(KvLedger, AMoveTakesEverythingAlongAndLeavesAFreeSlot) {
  KvLedger ledger(kStreams);
  const auto first = ledger.take(10);
  const auto second = ledger.take(20);
  ledger.use(*second, 15);
  ledger.release(*first);
  EXPECT_EQ(ledger.lowest_free_slot(), SlotId{0});
  ledger.move(*second, SlotId{0});
  EXPECT_EQ(ledger.reserved(SlotId{0}), 20);
  EXPECT_EQ(ledger.cells_used(), 15);
  EXPECT_EQ(ledger.slots_used(), 1);
  EXPECT_TRUE(ledger.conserved());
  ledger.use(SlotId{0}, 5);
  EXPECT_DEATH(ledger.use(SlotId{0}, 1), "conservation: a sequence uses more cells") << "what it had used moves too";
  EXPECT_EQ(ledger.take(30), SlotId{1}) << "the slot that it left";
}

TEST(KvLedgerDeathTest, MovesOnlyFromATakenSlotToAFreeOne) {
  KvLedger ledger(kStreams);
  const auto slot = ledger.take(10);
  const auto other = ledger.take(10);
  EXPECT_DEATH(ledger.move(*slot, *other), "conservation: a sequence moves into a slot that is taken");
  EXPECT_DEATH(ledger.move(SlotId{2}, SlotId{3}), "conservation: a slot is used that was not taken");
  EXPECT_DEATH(ledger.move(*slot, SlotId{4}), "check failed");
  EXPECT_DEATH(ledger.reserve(SlotId{2}, 1), "conservation: a slot is used that was not taken");
}

TEST(KvLedger, KnowsTheLowestAndTheHighestFreeSlot) {
  KvLedger ledger(kStreams);
  EXPECT_EQ(ledger.lowest_free_slot(), SlotId{0});
  EXPECT_EQ(ledger.highest_free_slot(), SlotId{3});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ledger.take(1).has_value());
  ledger.release(SlotId{1});
  EXPECT_EQ(ledger.highest_free_slot(), SlotId{1}) << "the only one";
  ledger.release(SlotId{2});
  EXPECT_EQ(ledger.lowest_free_slot(), SlotId{1});
  EXPECT_EQ(ledger.highest_free_slot(), SlotId{2});
}

TEST(KvLedgerDeathTest, HasNoFreeSlotWhenAllAreTaken) {
  KvLedger ledger(kStreams);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ledger.take(1).has_value());
  EXPECT_FALSE(ledger.has_free_slot());
  EXPECT_DEATH(ledger.lowest_free_slot(), "no free slot");
  EXPECT_DEATH(ledger.highest_free_slot(), "no free slot");
}

TEST(KvLedgerDeathTest, RefusesUseBeyondTheReservation) {
  KvLedger ledger(kStreams);
  const auto slot = ledger.take(10);
  ledger.use(*slot, 10);
  EXPECT_DEATH(ledger.use(*slot, 1), "conservation: a sequence uses more cells");
}

TEST(KvLedgerDeathTest, RefusesSlotsThatAreNotTaken) {
  KvLedger ledger(kStreams);
  const auto slot = ledger.take(10);
  ledger.release(*slot);
  EXPECT_DEATH(ledger.release(*slot), "conservation: a slot is used that was not taken");
  EXPECT_DEATH(ledger.use(*slot, 1), "conservation: a slot is used that was not taken");
  EXPECT_DEATH(ledger.release(SlotId{-1}), "check failed");
  EXPECT_DEATH(ledger.release(SlotId{4}), "check failed");
}

TEST(KvLedgerDeathTest, RefusesReservationsAndLayoutsThatCannotBeKept) {
  KvLedger ledger(kStreams);
  EXPECT_DEATH(ledger.take(101), "check failed");
  const auto slot = ledger.take(1);
  EXPECT_DEATH(ledger.reserve(*slot, 101), "check failed");
  EXPECT_DEATH(KvLedger({0, 100, 100, false}), "check failed");
  EXPECT_DEATH(KvLedger({4, 399, 100, false}), "check failed");
  EXPECT_DEATH(KvLedger({4, 99, 100, true}), "progress") << "the head of the queue would wait for ever";
}

TEST(KvLedger, ACachedSlotIsNeitherFreeNorTaken) {
  KvLedger ledger(kStreams);
  const SlotId slot = *ledger.take(60);
  ledger.use(slot, 50);
  ledger.cache(slot);
  EXPECT_FALSE(ledger.is_free(slot));
  EXPECT_TRUE(ledger.is_cached(slot));
  EXPECT_EQ(ledger.slots_used(), 0);
  EXPECT_EQ(ledger.slots_cached(), 1);
  EXPECT_EQ(ledger.cells_used() + ledger.cells_reserved(), 0);
  EXPECT_EQ(ledger.cells_cached(), 50);
  EXPECT_NE(*ledger.take(10), slot);
  EXPECT_TRUE(ledger.conserved());

  ledger.take_cached(slot, 70, 40);
  EXPECT_EQ(ledger.slots_used(), 2);
  EXPECT_EQ(ledger.slots_cached() + ledger.cells_cached(), 0);
  EXPECT_EQ(ledger.cells_used(), 40);
  EXPECT_EQ(ledger.reserved(slot), 70);
  EXPECT_TRUE(ledger.conserved());

  ledger.cache(slot);
  ledger.exchange(slot, SlotId{1});
  EXPECT_TRUE(ledger.is_cached(SlotId{1}));
  EXPECT_EQ(ledger.reserved(slot), 10);
  ledger.release(SlotId{1});
  EXPECT_TRUE(ledger.is_free(SlotId{1}));
  EXPECT_TRUE(ledger.conserved());
}

// Thousands of random calls, against books that the test keeps itself.
TEST(KvLedger, IsConservedWhateverHappens) {
  struct Entry {
    TokenCount reserved = -1;  // -1: free
    TokenCount used = 0;
  };
  for (const KvLedger::Layout& layout : {kStreams, kUnified}) {
    KvLedger ledger(layout);
    std::mt19937 random(4711);
    const auto below = [&random](int n) { return static_cast<TokenCount>(random() % static_cast<unsigned>(n)); };
    std::vector<Entry> books(4);
    int refused = 0, moved = 0;
    const auto total = [&books] {
      return std::accumulate(books.begin(), books.end(), 0,
                             [](int sum, const Entry& entry) { return sum + std::max(entry.reserved, 0); });
    };
    for (int i = 0; i < 20'000; ++i) {
      const SlotId slot{below(4)}, other{below(4)};
      Entry& entry = books[static_cast<std::size_t>(slot.value)];
      Entry& target = books[static_cast<std::size_t>(other.value)];
      const int action = below(6);
      if (action < 2) {
        const TokenCount cells = below(101);
        if (const auto taken = ledger.take(cells)) books[static_cast<std::size_t>(taken->value)] = {cells, 0};
      } else if (entry.reserved < 0) {
        continue;
      } else if (action == 2) {
        const TokenCount cells = below(101);
        const bool room = !layout.unified || total() + std::max(cells - entry.reserved, 0) <= layout.cells;
        ASSERT_EQ(ledger.reserve(slot, cells), room);
        if (room) entry.reserved = std::max(entry.reserved, cells);
        refused += room ? 0 : 1;
      } else if (action == 3 && target.reserved < 0) {
        ledger.move(slot, other);
        target = std::exchange(entry, {});
        ++moved;
      } else if (action == 4) {
        ledger.release(slot);
        entry = {};
      } else if (entry.reserved > entry.used) {
        const TokenCount cells = 1 + below(entry.reserved - entry.used);
        ledger.use(slot, cells);
        entry.used += cells;
      }
      TokenCount used = 0;
      for (const Entry& each : books) used += each.used;
      ASSERT_EQ(ledger.cells_reserved(), total());
      ASSERT_EQ(ledger.cells_used(), used);
      ASSERT_LE(total(), layout.cells);
      ASSERT_TRUE(ledger.conserved());
    }
    EXPECT_GT(moved, 100);
    EXPECT_EQ(refused > 100, layout.unified) << "reservations fail in the pool and nowhere else";
  }
}

}  // namespace
}  // namespace chasqui
