// The disk tier under seeded random use.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "core/fake_tokens.h"
#include "sched/disk_tier.h"
#include "sched/fake_disk.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;

// Prompts that begin like others, in a cache that is too small, above a disk that is too small and fails at times: what
// is in memory is always right, and never too much.
TEST(DiskTierRandom, KeepsItsPromisesWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::size_t memory = 500 + below(5000);
    const DiskLimits limits{.bytes = 1000 + below(20'000), .queue_bytes = below(4000)};
    const bool cut_anywhere = below(4) > 0;
    PrefixCache cache({.bytes = memory, .cut_anywhere = cut_anywhere, .hand_over = true});
    DiskTier tier(limits, cut_anywhere, cache);
    FakeDisk disk;
    std::vector<DiskOrder> orders;
    std::vector<DiskOutcome> outcomes;
    TimePoint now{};
    tier.name(1, 1);
    tier.name(2, 2);
    for (int turn = 0; turn < 1500; ++turn) {
      now += milliseconds(10);
      const PrefixKey key{static_cast<std::uint32_t>(1 + below(2)), 0};
      Tokens tokens = test_prompt(static_cast<TokenCount>(33 + below(60)), below(4));
      if (below(2) == 0) tokens = with(std::move(tokens), test_prompt(static_cast<TokenCount>(below(60)), below(4)));
      const auto length = static_cast<TokenCount>(tokens.size());
      switch (below(8)) {
        case 0:
        case 1: cache.insert(key, tokens, disk_snapshot_of(tokens), milliseconds(length), now); break;
        case 2: tier.rest(); break;
        case 3: tier.read(key, tokens, length, {cache.match(key, tokens, length).length, kRowSeconds, 0}); break;
        case 4: tier.take_orders(orders); break;
        case 5: {
          disk.reads_fail = below(10) == 0;
          disk.writes_fail = below(10) == 0;
          for (DiskOutcome& outcome : disk.carry_out(orders)) outcomes.push_back(std::move(outcome));
          break;
        }
        case 6: {
          for (DiskOutcome& outcome : outcomes) tier.done(std::move(outcome), kRowSeconds, now);
          outcomes.clear();
          break;
        }
        default: {
          const PrefixCache::Match match = cache.match(key, tokens, length);
          cache.touch(match, now);
          tier.used(key, std::span(tokens).first(static_cast<std::size_t>(match.length)));
          if (match.length == 0) break;
          const auto bytes = static_cast<std::size_t>(match.length) * 10;
          const KvSnapshotPtr right = disk_snapshot_of(tokens);
          ASSERT_TRUE(std::ranges::equal(match.snapshot->bytes().first(bytes), right->bytes().first(bytes)));
        }
      }
      tier.take_evicted();
      ASSERT_TRUE(cache.consistent() && tier.consistent()) << "seed " << seed << " turn " << turn;
      ASSERT_LE(cache.bytes(), memory);
      ASSERT_LE(tier.stats().store.bytes, limits.bytes);
    }
    tier.flush();
    tier.take_orders(orders);
    for (int turns = 0; tier.writing() || !orders.empty() || !outcomes.empty(); ++turns) {
      ASSERT_LT(turns, 1000);
      for (DiskOutcome& outcome : disk.carry_out(orders)) outcomes.push_back(std::move(outcome));
      for (DiskOutcome& outcome : outcomes) tier.done(std::move(outcome), kRowSeconds, now);
      outcomes.clear();
      tier.take_orders(orders);
    }
    ASSERT_EQ(disk.files.size(), tier.stats().store.files) << "seed " << seed;
  }
}

}  // namespace
}  // namespace chasqui
