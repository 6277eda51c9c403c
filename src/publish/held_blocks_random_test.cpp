// What routers are told against what the cache would find: thousands of random operations on a prefix cache that is
// full, and on cached slots.
#include <random>

#include <gtest/gtest.h>

#include "cache/prefix_cache.h"
#include "core/kv_snapshot.h"
#include "publish/fake_router.h"
#include "publish/held_blocks.h"

namespace chasqui::publish {
namespace {

using Tokens = std::vector<Token>;

KvSnapshotPtr snapshot_of(const Tokens& tokens) {
  return std::make_shared<const KvSnapshot>(tokens.size() * 10, static_cast<TokenCount>(tokens.size()));
}

class Life {
 public:
  explicit Life(unsigned seed) : random_(seed) {}

  void step() {
    now_ += seconds(1);
    switch (below(8)) {
      case 0: cache_.erase_tenant(0); break;
      case 1: cache_.touch(cache_.match(kKey, prompt(), INT32_MAX), now_); break;
      case 2: announce(); break;
      case 3:
        if (const auto match = cache_.match(kKey, prompt(), INT32_MAX); match.length > 0)
          cache_.give_up(*match.snapshot);
        break;
      default: {
        const Tokens tokens = prompt();
        (void)cache_.insert(kKey, tokens, snapshot_of(tokens), milliseconds(tokens.size()), now_);
      }
    }
    tried_.push_back(prompt());
    if (below(3) == 0) tell();
  }

  void tell() {
    log_.flush();
    std::vector<KvBatch> out;
    channel_.apply({.changes = std::exchange(waiting_, {})}, 0, out);
    router_.read(out);
    blocks_as_found();
  }

 private:
  static constexpr PrefixKey kKey{};

  std::size_t below(std::size_t end) { return random_() % end; }

  // Of few beginnings, so that many share some blocks.
  Tokens prompt() {
    Tokens out;
    for (std::size_t blocks = 1 + below(6); blocks > 0; --blocks) {
      out.insert(out.end(), 64, static_cast<Token>(below(3)));
    }
    out.resize(out.size() - below(40));
    return out;
  }

  void announce() {
    if (computing_.value != 0) cache_.withdraw(computing_);
    ++computing_.value;
    computed_ = prompt();
    cache_.announce(kKey, computed_, computing_);
    cache_.computed(computing_, static_cast<TokenCount>(computed_.size()));
  }

  // Each prompt that was tried finds as many whole blocks as the router says.
  void blocks_as_found() {
    const auto told = router_.prefixes();
    for (const Tokens& tokens : tried_) {
      const auto known = cache_.match(kKey, tokens, INT32_MAX).length;
      const auto running = std::ranges::mismatch(tokens, computed_).in1 - tokens.begin();
      const auto found = std::max<std::ptrdiff_t>(known, running) / kHeldBlock;
      std::ptrdiff_t said = 0;
      while (told.contains({tokens.begin(),
                            tokens.begin() + std::min<std::ptrdiff_t>((said + 1) * kHeldBlock, std::ssize(tokens))}) &&
             (said + 1) * kHeldBlock <= std::ssize(tokens)) {
        ++said;
      }
      ASSERT_EQ(said, found);
    }
    tried_.clear();
  }

  std::mt19937 random_;
  TimePoint now_{};
  HoldingChanges waiting_;
  HoldingLog log_{{}, 1, [this](HoldingChanges& changes) { waiting_.add(changes); }};
  PrefixCache cache_{{.bytes = 12'000, .holdings = &log_}};
  KvEventMetrics metrics_;
  KvChannel channel_{BlockHasher({1, 2}), metrics_};
  FakeRouter router_;
  RequestId computing_{};
  Tokens computed_;
  std::vector<Tokens> tried_;
};

TEST(HeldBlocksRandom, AreWhatTheCacheFinds) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Life life(seed);
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) life.step();
    life.tell();
  }
}

// Holdings of all kinds begin and end, seen by the publisher at any time.
void count_every_holder(const BlockHasher& hash) {
  std::mt19937 random(5);
  HoldingChanges waiting;
  HoldingLog log({}, 1, [&waiting](HoldingChanges& changes) { waiting.add(changes); });
  HeldBlocks blocks(hash);
  std::vector<std::uint64_t> held;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0) {
      Tokens tokens;
      for (std::size_t n = random() % 5; n > 0; --n) tokens.insert(tokens.end(), 64, static_cast<Token>(random() % 2));
      held.push_back(random() % 4 == 0 ? log.hold(LastingKey{}, tokens) : log.hold(PrefixKey{}, tokens));
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      log.drop(held.back());
      held.pop_back();
    }
    if (random() % 3 == 0) log.flush();
    if (random() % 10 > 0) continue;
    blocks.apply(waiting);
    waiting = {};
    (void)blocks.take_changes();
    ASSERT_TRUE(blocks.consistent());
  }
}

TEST(HeldBlocksRandom, CountEveryHolder) { count_every_holder(BlockHasher({1, 2})); }

TEST(HeldBlocksRandom, CountEveryHolderWhereHashesAreEqual) { count_every_holder(BlockHasher({1, 2}, 7)); }

}  // namespace
}  // namespace chasqui::publish
