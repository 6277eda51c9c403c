// The cache against a reference that follows the same rules with a list and a loop: the same matches, the same entries
// evicted, and conservation after every operation.
#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "cache/prefix_cache.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;
using Insertion = PrefixCache::Insertion;

std::size_t common(const Tokens& a, const Tokens& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

class Reference {
 public:
  struct Item {
    PrefixKey key;
    Tokens tokens;
    const KvSnapshot* snapshot = nullptr;
    double density = 0;
    std::int64_t hits = 1;
    double priority = 0;
    TimePoint used{};
  };

  explicit Reference(const PrefixCache::Limits& limits) : limits_(limits) {}

  std::vector<KvSnapshotPtr> leases;
  std::list<Item> items;  // in the order in which they were inserted
  std::map<RequestId, std::pair<PrefixKey, Tokens>> pending;
  std::uint64_t evictions = 0;

  bool leased(const KvSnapshot* snapshot) const {
    return std::any_of(leases.begin(), leases.end(), [&](const auto& lease) { return lease.get() == snapshot; });
  }
  // Entries, and what is leased beside them.
  std::size_t bytes() const {
    std::set<const KvSnapshot*> resident;
    for (const Item& item : items) resident.insert(item.snapshot);
    for (const KvSnapshotPtr& lease : leases) resident.insert(lease.get());
    std::size_t sum = 0;
    for (const KvSnapshot* snapshot : resident) sum += snapshot->resident_bytes();
    return sum;
  }
  std::size_t usable(const Tokens& entry, const Tokens& query) const {
    const std::size_t length = common(entry, query);
    return limits_.cut_anywhere || length == entry.size() ? length : 0;
  }
  std::size_t longest(PrefixKey key, const Tokens& query) const {
    std::size_t most = 0;
    for (const Item& item : items) most = std::max(most, item.key == key ? usable(item.tokens, query) : 0);
    return most;
  }
  std::size_t longest_pending(PrefixKey key, const Tokens& query) const {
    std::size_t most = 0;
    for (const auto& [id, other] : pending) most = std::max(most, other.first == key ? usable(other.second, query) : 0);
    return most;
  }
  std::size_t ways(PrefixKey key, const Tokens& tokens) const {
    std::set<Token> next;
    for (const Item& item : items) {
      const bool longer = item.key == key && item.tokens.size() > tokens.size();
      if (longer && common(item.tokens, tokens) == tokens.size()) next.insert(item.tokens[tokens.size()]);
    }
    return next.size();
  }
  Item* find(const KvSnapshot* snapshot) {
    const auto found = std::find_if(items.begin(), items.end(), [&](auto& item) { return item.snapshot == snapshot; });
    return found == items.end() ? nullptr : &*found;
  }
  void rank(Item& item, TimePoint now) {
    item.priority = clock_ + static_cast<double>(std::min(item.hits, PrefixCache::kHitsMax)) * item.density;
    item.used = now;
  }

  // `carrier`: which of equally good entries the cache says serves these tokens.
  Insertion insert(PrefixKey key, const Tokens& tokens, const KvSnapshot* snapshot, Duration cost, TimePoint now,
                   const KvSnapshot* carrier) {
    const auto same = std::find_if(items.begin(), items.end(),
                                   [&](const Item& item) { return item.key == key && item.tokens == tokens; });
    if (same == items.end() && limits_.cut_anywhere && ways(key, tokens) == 1) {
      rank(*find(carrier), now);
      return Insertion::covered;
    }
    std::size_t pinned = snapshot->resident_bytes();
    std::set<const KvSnapshot*> leased_ones;
    for (const KvSnapshotPtr& lease : leases) leased_ones.insert(lease.get());
    for (const KvSnapshot* one : leased_ones) pinned += one->resident_bytes();
    if (pinned > limits_.bytes) return Insertion::refused;
    const double density = static_cast<double>(cost.count()) / static_cast<double>(snapshot->resident_bytes());
    auto mine = same;
    if (same == items.end()) {
      mine = items.insert(items.end(), Item{key, tokens, snapshot, density});
      if (limits_.cut_anywhere) absorb(mine);
    }
    mine->snapshot = snapshot;
    mine->density = density;
    rank(*mine, now);
    evict_all_but(mine);
    return Insertion::stored;
  }

 private:
  using Place = std::list<Item>::iterator;

  // From the longest to the shortest: what goes may leave a single way for the next.
  void absorb(Place by) {
    for (std::size_t length = by->tokens.size() - 1; length > 0; --length) {
      for (auto it = items.begin(); it != items.end(); ++it) {
        if (it->tokens.size() != length || it->key != by->key || common(it->tokens, by->tokens) != length) continue;
        if (ways(it->key, it->tokens) == 1) {
          by->hits += it->hits;
          items.erase(it);
        }
        break;
      }
    }
  }
  void evict_all_but(Place keep) {
    while (bytes() > limits_.bytes) {
      auto victim = items.end();
      for (auto it = items.begin(); it != items.end(); ++it) {
        if (it == keep || leased(it->snapshot)) continue;
        const auto value = [](Place item) { return std::pair(item->priority, item->used); };
        if (victim == items.end() || value(it) < value(victim)) victim = it;
      }
      ASSERT_NE(victim, items.end());
      clock_ = std::max(clock_, victim->priority);
      ++evictions;
      items.erase(victim);
    }
  }

  const PrefixCache::Limits limits_;
  double clock_ = 0;
};

class Play {
 public:
  Play(unsigned seed, bool cut_anywhere)
      : random_(seed), limits_{.bytes = 600, .cut_anywhere = cut_anywhere}, cache_(limits_), reference_(limits_) {}

  void operation() {
    now_ += milliseconds(below(3));  // sometimes the same time
    const unsigned what = below(100);
    if (what < 35) {
      insert();
    } else if (what < 65) {
      look_up(what < 50);
    } else if (what < 75) {
      if (!reference_.leases.empty())
        reference_.leases.erase(reference_.leases.begin() + below_size(reference_.leases));
    } else if (what < 76) {
      const std::uint32_t tenant = below(2);
      const std::size_t erased = std::erase_if(reference_.items, [&](auto& item) { return item.key.tenant == tenant; });
      ASSERT_EQ(cache_.erase_tenant(tenant), erased);
    } else if (what < 86) {
      const PrefixKey key = draw_key();
      const Tokens tokens = draw_tokens();
      const RequestId id{++last_request_};
      cache_.announce(key, tokens, id);
      reference_.pending[id] = {key, tokens};
    } else if (what < 97 && !reference_.pending.empty()) {
      const auto gone = std::next(reference_.pending.begin(), below_size(reference_.pending));
      cache_.withdraw(gone->first);
      reference_.pending.erase(gone);
    }
  }

  void check() {
    ASSERT_TRUE(cache_.consistent());
    const PrefixCache::Stats stats = cache_.stats();
    ASSERT_EQ(stats.entries, reference_.items.size());
    ASSERT_EQ(stats.bytes, reference_.bytes());
    ASSERT_EQ(stats.pending, reference_.pending.size());
    ASSERT_EQ(stats.evictions, reference_.evictions);
    for (int i = 0; i < 3; ++i) {
      const PrefixKey key = draw_key();
      const Tokens query = draw_tokens();
      ASSERT_EQ(cache_.match(key, query, INT32_MAX).length, reference_.longest(key, query));
      const auto soon = cache_.match_pending(key, query, INT32_MAX);
      ASSERT_EQ(soon.length, reference_.longest_pending(key, query));
      if (soon.length > 0) {
        ASSERT_EQ(reference_.usable(reference_.pending.at(soon.request).second, query), soon.length);
      }
    }
  }

  int hits() const { return hits_; }
  int refused() const { return refused_; }
  std::uint64_t evictions() const { return reference_.evictions; }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  template <class Container>
  std::ptrdiff_t below_size(const Container& container) {
    return below(static_cast<unsigned>(container.size()));
  }
  PrefixKey draw_key() { return PrefixKey{below(2), below(2)}; }
  // Few different tokens, so that prompts share much, and the middle of long labels too.
  Tokens draw_tokens() {
    Tokens tokens(1 + below(10));
    for (Token& token : tokens) token = below(4) == 0 ? 1 : 0;
    return tokens;
  }

  void insert() {
    const PrefixKey key = draw_key();
    const Tokens tokens = draw_tokens();
    const std::size_t size = tokens.size() * 10 + (below(20) == 0 ? 550 : below(5));
    auto snapshot = std::make_shared<const KvSnapshot>(size, static_cast<TokenCount>(tokens.size()));
    const Duration cost = milliseconds(1 + below(10));
    const KvSnapshot* carrier = cache_.match(key, tokens, INT32_MAX).snapshot.get();
    const Insertion expected = reference_.insert(key, tokens, snapshot.get(), cost, now_, carrier);
    ASSERT_EQ(cache_.insert(key, tokens, std::move(snapshot), cost, now_), expected);
    refused_ += expected == Insertion::refused ? 1 : 0;
  }

  void look_up(bool lease) {
    const PrefixKey key = draw_key();
    Tokens tokens = draw_tokens();
    const auto most = static_cast<TokenCount>(below(12));
    const PrefixCache::Match match = cache_.match(key, tokens, most);
    tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(most)));
    ASSERT_EQ(match.length, reference_.longest(key, tokens));
    if (match.length > 0) {
      Reference::Item* item = reference_.find(match.snapshot.get());
      ASSERT_NE(item, nullptr);
      ASSERT_EQ(reference_.usable(item->tokens, tokens), match.length);
      ++item->hits;
      ++hits_;
      reference_.rank(*item, now_);
      if (lease && reference_.leases.size() < 4) reference_.leases.push_back(match.snapshot);
    }
    cache_.touch(match, now_);
  }

  std::mt19937 random_;
  const PrefixCache::Limits limits_;
  PrefixCache cache_;
  Reference reference_;
  TimePoint now_{};
  std::uint64_t last_request_ = 0;
  int hits_ = 0;
  int refused_ = 0;
};

TEST(PrefixCacheRandom, AgreesWithAReferenceAfterEveryOperation) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    Play play(seed, seed % 2 == 1);
    for (int i = 0; i < 10'000; ++i) {
      ASSERT_NO_FATAL_FAILURE(play.operation()) << "seed " << seed << " operation " << i;
      ASSERT_NO_FATAL_FAILURE(play.check()) << "seed " << seed << " operation " << i;
    }
    EXPECT_GT(play.hits(), 1000);
    EXPECT_GT(play.evictions(), 500U);
    EXPECT_GT(play.refused(), 20);
  }
}

}  // namespace
}  // namespace chasqui
