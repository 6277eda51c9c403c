#include "cache/radix_tree.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/fake_tokens.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;

constexpr EntryId kA{1}, kB{2}, kC{3};

TEST(RadixTree, FindsNothingInAnEmptyTree) {
  const RadixTree tree;
  EXPECT_EQ(tree.match(counting(3)).length, 0);
  EXPECT_EQ(tree.match({}).length, 0);
  EXPECT_TRUE(tree.empty());
  EXPECT_TRUE(tree.consistent());
}

TEST(RadixTree, MatchesAsFarAsTheTokensAgree) {
  RadixTree tree;
  tree.insert(Tokens{1, 2, 3, 4}, kA);
  EXPECT_EQ(tree.match(Tokens{1, 2, 9}).length, 2) << "in the middle of a label";
  EXPECT_EQ(tree.match(Tokens{1, 2, 9}).carrier, kA);
  EXPECT_EQ(tree.match(Tokens{1, 2, 3, 4, 5}).length, 4) << "beyond the end";
  EXPECT_EQ(tree.match(Tokens{1}).length, 1) << "a query that ends inside";
  EXPECT_EQ(tree.match(Tokens{2, 3}).length, 0);
}

TEST(RadixTree, TellsTheLongestEntryThatIsWhollyAPrefix) {
  RadixTree tree;
  tree.insert(Tokens{1, 2}, kA);
  tree.insert(Tokens{1, 2, 3, 4}, kB);
  const RadixTree::Match match = tree.match(Tokens{1, 2, 3, 9});
  EXPECT_EQ(match.length, 3);
  EXPECT_EQ(match.carrier, kB);
  EXPECT_EQ(match.whole, 2);
  EXPECT_EQ(match.whole_entry, kA);
}

TEST(RadixTree, PrefersTheShortestOfThoseThatHaveTheWholeMatch) {
  RadixTree tree;
  tree.insert(with(counting(10), {100, 101, 102}), kA);
  tree.insert(with(counting(10), {200}), kB);
  EXPECT_EQ(tree.match(counting(10)).carrier, kB);
  EXPECT_EQ(tree.match(counting(5)).carrier, kB);
  EXPECT_EQ(tree.match(with(counting(10), {100})).carrier, kA) << "the shorter one does not have this token";
  tree.insert(counting(10), kC);
  EXPECT_EQ(tree.match(with(counting(10), {7})).carrier, kC);
  tree.erase(kC);
  EXPECT_EQ(tree.match(counting(10)).carrier, kB);
  tree.erase(kB);
  EXPECT_EQ(tree.match(counting(10)).carrier, kA);
  EXPECT_TRUE(tree.consistent());
}

TEST(RadixTree, CountsTheWaysThatLeadOn) {
  RadixTree tree;
  tree.insert(Tokens{1, 2}, kA);
  EXPECT_EQ(tree.ways_below(kA), 0U);
  tree.insert(Tokens{1, 2, 3}, kB);
  EXPECT_EQ(tree.ways_below(kA), 1U);
  tree.insert(Tokens{1, 2, 4}, kC);
  EXPECT_EQ(tree.ways_below(kA), 2U);
  EXPECT_EQ(tree.match(Tokens{1, 2}).ways, 2U);
  EXPECT_EQ(tree.match(Tokens{1}).ways, 1U) << "inside a label there is one";
  EXPECT_EQ(tree.match(Tokens{1, 2, 3}).ways, 0U);
  EXPECT_EQ(tree.entry_above(kC), kA);
  EXPECT_EQ(tree.entry_above(kA), std::nullopt);
}

TEST(RadixTree, AnswersWithTheFirstOfThoseThatAreEqual) {
  RadixTree tree;
  tree.insert(counting(3), kB);
  tree.insert(counting(3), kA);
  EXPECT_EQ(tree.match(counting(3)).carrier, kB);
  tree.erase(kB);
  EXPECT_EQ(tree.match(counting(3)).carrier, kA);
  EXPECT_TRUE(tree.consistent());
}

TEST(RadixTree, MergesWhatErasingLeavesApartAndUsesItsMemoryAgain) {
  CountedMemory outside(std::pmr::new_delete_resource());
  {
    RadixTree tree(&outside);
    tree.insert(with(counting(1000), {1}), kA);
    tree.insert(with(counting(1000), {2}), kB);
    tree.erase(kB);
    tree.insert(with(counting(1000), {2}), kB);
    const std::size_t memory = tree.memory_bytes();
    EXPECT_GE(memory, 1002 * sizeof(Token));
    EXPECT_LT(memory, 1002 * sizeof(Token) + 4096) << "shared tokens are held once, and labels have no slack";
    for (int i = 0; i < 1000; ++i) {
      tree.erase(kB);
      tree.insert(with(counting(1000), {3 + i}), kB);
      ASSERT_TRUE(tree.consistent());
    }
    EXPECT_EQ(tree.memory_bytes(), memory);
    EXPECT_EQ(tree.memory_bytes(), outside.bytes()) << "what it says is what it took";
  }
  EXPECT_EQ(outside.bytes(), 0U);
}

TEST(RadixTree, ManyEntriesThatDifferInTheLastTokenOnly) {
  constexpr Token kEntries = 10'000;
  RadixTree tree;
  Tokens tokens = with(counting(500), {0});
  for (Token i = 0; i < kEntries; ++i) {
    tokens.back() = (i * 7919) % kEntries;
    tree.insert(tokens, EntryId{static_cast<std::uint64_t>(tokens.back()) + 1});
  }
  ASSERT_TRUE(tree.consistent());
  EXPECT_LT(tree.memory_bytes(), kEntries * 400U) << "no copy of the 500 tokens is kept";
  for (Token i = 0; i < kEntries; ++i) {
    tokens.back() = i;
    ASSERT_EQ(tree.match(tokens).whole_entry.value, static_cast<std::uint64_t>(i) + 1);
  }
  tokens.back() = kEntries;
  EXPECT_EQ(tree.match(tokens).length, 500);
  EXPECT_EQ(tree.match(tokens).ways, static_cast<std::size_t>(kEntries));
  for (std::uint64_t i = 0; i < kEntries; ++i) tree.erase(EntryId{i + 1});
  EXPECT_TRUE(tree.empty());
  EXPECT_TRUE(tree.consistent());
}

TEST(RadixTree, VeryLongPrefixesSplitAndMergeAtEveryPlace) {
  const Tokens tokens = counting(100'000);
  RadixTree tree;
  tree.insert(tokens, kA);
  std::uint64_t id = 10;
  for (std::size_t cut = 1; cut < tokens.size(); cut += 997) {
    Tokens other(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(cut));
    other.push_back(-1);
    tree.insert(other, EntryId{++id});
    ASSERT_EQ(tree.match(other).carrier, EntryId{id});
    ASSERT_EQ(tree.match(tokens).length, 100'000);
  }
  EXPECT_TRUE(tree.consistent());
  for (; id > 10; --id) tree.erase(EntryId{id});
  EXPECT_EQ(tree.match(tokens).length, 100'000);
  EXPECT_EQ(tree.size(), 1U);
  EXPECT_TRUE(tree.consistent());
}

TEST(RadixTree, ChainsOfPrefixesAreDeepAndStillFine) {
  const Tokens tokens = counting(3000);
  RadixTree tree;
  for (std::size_t n = 1; n <= tokens.size(); ++n) tree.insert(std::span(tokens).first(n), EntryId{n});
  ASSERT_TRUE(tree.consistent());
  EXPECT_EQ(tree.match(tokens).whole_entry, EntryId{3000});
  for (std::size_t n = 1; n <= tokens.size(); ++n) {
    ASSERT_EQ(tree.match(tokens).length, 3000);
    tree.erase(EntryId{n});
  }
  EXPECT_TRUE(tree.empty());
}

// The same answers from a table that compares with everything.
class Table {
 public:
  std::map<EntryId, Tokens> entries;

  static std::size_t common(const Tokens& a, const Tokens& b) {
    const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(end - a.begin());
  }

  void expect_same(const RadixTree& tree, const Tokens& query) const {
    std::size_t longest = 0, whole = 0, carrier = SIZE_MAX;
    for (const auto& [id, tokens] : entries) {
      const std::size_t length = common(query, tokens);
      longest = std::max(longest, length);
      if (length == tokens.size()) whole = std::max(whole, length);
    }
    std::set<Token> ways;
    for (const auto& [id, tokens] : entries) {
      if (common(query, tokens) != longest) continue;
      carrier = std::min(carrier, tokens.size());
      if (tokens.size() > longest) ways.insert(tokens[longest]);
    }
    const RadixTree::Match match = tree.match(query);
    ASSERT_EQ(match.length, longest);
    ASSERT_EQ(match.whole, whole);
    ASSERT_EQ(match.ways, ways.size());
    if (longest > 0) {
      const Tokens& carried = entries.at(match.carrier);
      ASSERT_EQ(common(query, carried), longest);
      ASSERT_EQ(carried.size(), carrier);
    }
    if (whole > 0) {
      ASSERT_EQ(entries.at(match.whole_entry), Tokens(query.begin(), query.begin() + match.whole));
    }
  }
};

TEST(RadixTree, AgreesWithATable) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return random() % n; };
    const auto draw = [&] {
      Tokens tokens(1 + below(12));
      for (Token& token : tokens) token = static_cast<Token>(below(seed == 1 ? 2 : 4));
      return tokens;
    };
    RadixTree tree;
    Table table;
    std::uint64_t last = 0;
    for (int i = 0; i < 3000; ++i) {
      if (below(100) < (i < 2000 ? 60U : 20U) || table.entries.empty()) {
        const EntryId id{++last};
        const Tokens tokens = draw();
        tree.insert(tokens, id);
        table.entries.emplace(id, tokens);
      } else {
        const auto victim = std::next(table.entries.begin(), below(static_cast<unsigned>(table.entries.size())));
        tree.erase(victim->first);
        table.entries.erase(victim);
      }
      ASSERT_TRUE(tree.consistent()) << "seed " << seed << " operation " << i;
      ASSERT_EQ(tree.size(), table.entries.size());
      ASSERT_NO_FATAL_FAILURE(table.expect_same(tree, draw())) << "seed " << seed << " operation " << i;
    }
  }
}

TEST(RadixTree, TellsTheTokensOfAnEntryHoweverItsNodesAreCut) {
  RadixTree tree;
  const std::vector<std::vector<Token>> texts = {
      {1, 2, 3, 4, 5, 6}, {1, 2, 3}, {1, 2, 9}, {7}, {1, 2, 3, 4, 5, 6, 7, 8}};
  for (std::size_t i = 0; i < texts.size(); ++i) tree.insert(texts[i], EntryId{i + 1});
  tree.erase(EntryId{2});
  std::vector<Token> tokens = {42};
  for (const std::size_t i : {0u, 2u, 3u, 4u}) {
    tree.copy_tokens(EntryId{i + 1}, tokens);
    EXPECT_EQ(tokens, texts[i]);
  }
}

}  // namespace
}  // namespace chasqui
