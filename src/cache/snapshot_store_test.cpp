#include "cache/snapshot_store.h"

#include <algorithm>
#include <list>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "core/fake_tokens.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;

constexpr LastingKey kStoreKey{1, 0};
constexpr TokenCount kWhole = INT32_MAX;
constexpr std::uint64_t kKv = 1000;

class SnapshotStoreTest : public testing::Test {
 protected:
  // Room for so many files of ten tokens.
  static SnapshotStore::Limits room_for(int files) {
    return {.bytes = static_cast<std::uint64_t>(files) * snapshot_file_bytes(10, kKv)};
  }
  std::uint64_t write(SnapshotStore& store, const Tokens& tokens, LastingKey key = kStoreKey) {
    const auto file = store.begin_write(key, tokens, kKv);
    if (!file) return 0;
    store.written(*file);
    EXPECT_TRUE(store.consistent());
    return *file;
  }
  static std::vector<std::uint64_t> removals(SnapshotStore& store) {
    std::vector<std::uint64_t> files;
    store.take_removals(files);
    return files;
  }
  static TokenCount matched(const SnapshotStore& store, const Tokens& tokens, LastingKey key = kStoreKey) {
    return store.match(key, tokens, kWhole).length;
  }
};

TEST_F(SnapshotStoreTest, FindsTheLongestPrefixThatIsInAFile) {
  SnapshotStore store(room_for(10));
  const Tokens prompt = test_prompt(10);
  const std::uint64_t file = write(store, prompt);
  const SnapshotStore::Match match = store.match(kStoreKey, with(prompt, {1, 2, 3}), kWhole);
  EXPECT_EQ(match.length, 10);
  EXPECT_EQ(match.file, file);
  EXPECT_EQ(match.tokens, 10);
  EXPECT_EQ(match.kv_bytes, kKv);
  EXPECT_EQ(store.match(kStoreKey, prompt, 9).length, 9);
  EXPECT_EQ(matched(store, {prompt[0], prompt[1], -1}), 2) << "the first tokens of a file serve, too";
  EXPECT_EQ(matched(store, {}), 0);
  EXPECT_EQ(matched(store, {-1}), 0);
}

TEST_F(SnapshotStoreTest, KeysNeverServeEachOther) {
  SnapshotStore store(room_for(10));
  write(store, test_prompt(10));
  EXPECT_EQ(matched(store, test_prompt(10), {2, 0}), 0) << "another tenant";
  EXPECT_EQ(matched(store, test_prompt(10), {1, 1}), 0) << "another adapter";
  EXPECT_FALSE(store.covers({2, 0}, test_prompt(10)));
}

TEST_F(SnapshotStoreTest, FindsNothingThatIsNotYetWritten) {
  SnapshotStore store(room_for(10));
  const auto file = store.begin_write(kStoreKey, test_prompt(10), kKv);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(matched(store, test_prompt(10)), 0);
  store.forget(*file);  // it could not be written
  EXPECT_EQ(removals(store), std::vector<std::uint64_t>{*file});
  EXPECT_EQ(store.stats().bytes, 0u);
  EXPECT_NE(write(store, test_prompt(10)), *file) << "numbers are not used again";
}

TEST_F(SnapshotStoreTest, WhereKvCannotBeCutOnlyWholeFilesServe) {
  SnapshotStore store({.bytes = 1 << 20, .cut_anywhere = false});
  const Tokens prompt = test_prompt(10);
  write(store, prompt);
  EXPECT_EQ(store.match(kStoreKey, with(prompt, {1}), kWhole).length, 10);
  EXPECT_EQ(store.match(kStoreKey, prompt, 9).length, 0);
  EXPECT_NE(write(store, with(prompt, {1})), 0u);
  EXPECT_TRUE(removals(store).empty()) << "the shorter one is still good for what goes on another way";
}

TEST_F(SnapshotStoreTest, DoesNotWriteWhatIsThere) {
  SnapshotStore store(room_for(10));
  const Tokens prompt = test_prompt(10);
  write(store, prompt);
  EXPECT_TRUE(store.covers(kStoreKey, prompt));
  EXPECT_TRUE(store.covers(kStoreKey, Tokens(prompt.begin(), prompt.begin() + 5)));
  EXPECT_EQ(write(store, prompt), 0u);
  EXPECT_EQ(write(store, Tokens(prompt.begin(), prompt.begin() + 5)), 0u);
}

TEST_F(SnapshotStoreTest, AShorterFileGoesWhenTheLongerIsThereAndNotBefore) {
  SnapshotStore store(room_for(10));
  const Tokens prompt = test_prompt(10);
  const std::uint64_t shorter = write(store, prompt);
  const auto longer = store.begin_write(kStoreKey, with(prompt, {1, 2}), kKv);
  EXPECT_TRUE(removals(store).empty());
  store.written(*longer);
  EXPECT_EQ(removals(store), std::vector<std::uint64_t>{shorter});
  EXPECT_EQ(store.match(kStoreKey, prompt, kWhole).file, *longer);
}

TEST_F(SnapshotStoreTest, AFileFromWhichSeveralWaysLeadOnStays) {
  SnapshotStore store(room_for(10));
  const Tokens prompt = test_prompt(10);
  write(store, with(prompt, {1}));
  write(store, with(prompt, {2}));
  EXPECT_NE(write(store, prompt), 0u) << "it is read faster than either";
  write(store, with(prompt, {2, 3}));
  EXPECT_EQ(store.stats().files, 3u);
}

TEST_F(SnapshotStoreTest, WhatWasNotUsedForLongestGoesFirst) {
  SnapshotStore store(room_for(3));
  std::vector<std::uint64_t> files;
  for (std::uint64_t i = 0; i < 3; ++i) files.push_back(write(store, test_prompt(10, i)));
  store.touch(files[0]);
  EXPECT_NE(write(store, test_prompt(10, 3)), 0u);
  EXPECT_EQ(removals(store), std::vector<std::uint64_t>{files[1]});
  EXPECT_EQ(store.stats().evictions, 1u);
}

TEST_F(SnapshotStoreTest, WhatIsBeingReadOrWrittenDoesNotGo) {
  SnapshotStore store(room_for(2));
  const std::uint64_t first = write(store, test_prompt(10, 1));
  store.hold(first);
  EXPECT_TRUE(store.begin_write(kStoreKey, test_prompt(10, 2), kKv).has_value());
  EXPECT_FALSE(store.begin_write(kStoreKey, test_prompt(10, 3), kKv).has_value())
      << "there is no room, and nothing may go";
  store.release(first);
  EXPECT_TRUE(store.begin_write(kStoreKey, test_prompt(10, 3), kKv).has_value());
  EXPECT_EQ(removals(store), std::vector<std::uint64_t>{first});
}

TEST_F(SnapshotStoreTest, WhatIsTooLargeDrivesNothingOut) {
  SnapshotStore store(room_for(2));
  write(store, test_prompt(10, 1));
  EXPECT_FALSE(store.begin_write(kStoreKey, test_prompt(10, 2), 10 * kKv).has_value());
  EXPECT_TRUE(removals(store).empty());
}

TEST_F(SnapshotStoreTest, FilesOfOtherModelsTakeRoomAndGoInTheirTurn) {
  SnapshotStore store(room_for(2));
  const std::uint64_t bytes = snapshot_file_bytes(10, kKv);
  store.found({.number = 4, .bytes = bytes});
  store.found({.number = 9, .bytes = bytes, .usable = true, .key = kStoreKey, .tokens = test_prompt(10, 9)});
  EXPECT_EQ(store.stats().foreign, 1u);
  EXPECT_EQ(store.match(kStoreKey, test_prompt(10, 9), kWhole).file, 9u);
  EXPECT_EQ(write(store, test_prompt(10, 1)), 10u) << "numbers go on where they were";
  EXPECT_EQ(removals(store), std::vector<std::uint64_t>{4});
  EXPECT_EQ(store.stats().foreign, 0u);
}

TEST_F(SnapshotStoreTest, WorkersReadEachOthersFilesAndRemoveTheirOwn) {
  const auto of_worker = [](std::uint32_t worker, std::uint32_t workers) {
    SnapshotStore::Limits limits = room_for(2);
    limits.worker = worker;
    limits.workers = workers;
    return limits;
  };
  // Three workers have left a file each, and now there are two.
  std::vector<FoundSnapshot> there;
  for (std::uint32_t i = 0; i < 3; ++i) {
    SnapshotStore before(of_worker(i, 3));
    const std::uint64_t bytes = snapshot_file_bytes(10, kKv);
    there.push_back({.number = write(before, test_prompt(10, i)),
                     .bytes = bytes,
                     .usable = true,
                     .key = kStoreKey,
                     .tokens = test_prompt(10, i)});
  }
  SnapshotStore first(of_worker(0, 2));
  SnapshotStore second(of_worker(1, 2));
  for (const FoundSnapshot& file : there) {
    first.found(file);
    second.found(file);
  }
  EXPECT_EQ(first.stats().files, 2u);
  EXPECT_EQ(second.stats().files, 1u) << "each file is owned by one";
  EXPECT_EQ(first.stats().bytes + second.stats().bytes, 3 * snapshot_file_bytes(10, kKv));
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(matched(first, test_prompt(10, i)), 10) << i;
    EXPECT_EQ(matched(second, test_prompt(10, i)), 10) << i;
  }
  std::set<std::uint64_t> numbers;
  for (const FoundSnapshot& file : there) numbers.insert(file.number);
  for (std::uint64_t i = 10; i < 14; ++i) {
    EXPECT_TRUE(numbers.insert(write(first, test_prompt(10, i))).second) << "a number is given once";
    EXPECT_TRUE(numbers.insert(write(second, test_prompt(10, i))).second) << "a number is given once";
  }
  for (const std::uint64_t file : removals(second)) EXPECT_NE(file, there[0].number) << "it is not its own";
  for (const std::uint64_t file : removals(first)) EXPECT_NE(file, there[1].number) << "it is not its own";
  EXPECT_EQ(matched(second, test_prompt(10, 0)), 10) << "as far as it knows";
  second.forget(there[0].number);
  EXPECT_EQ(removals(second), std::vector<std::uint64_t>{there[0].number}) << "what is damaged goes";
  EXPECT_TRUE(first.consistent() && second.consistent());
}

TEST_F(SnapshotStoreTest, ALowerLimitHoldsFromTheStart) {
  SnapshotStore store(room_for(2));
  for (std::uint64_t i = 1; i <= 4; ++i) {
    store.found({.number = i,
                 .bytes = snapshot_file_bytes(10, kKv),
                 .usable = true,
                 .key = kStoreKey,
                 .tokens = test_prompt(10, i)});
  }
  EXPECT_EQ(removals(store), (std::vector<std::uint64_t>{1, 2})) << "least recently used first";
  SnapshotStore few({.bytes = 1 << 30, .files = 1});
  EXPECT_NE(write(few, test_prompt(10, 1)), 0u);
  EXPECT_NE(write(few, test_prompt(10, 2)), 0u);
  EXPECT_EQ(few.stats().files, 1u);
}

// What the store should do, said in the simplest way: a list, least recently used first.
struct StoreReference {
  struct File {
    std::uint64_t number;
    Tokens tokens;
    std::uint64_t bytes;
    bool there;
  };

  TokenCount match(const Tokens& query) const {
    std::size_t best = 0;
    for (const File& file : files) {
      if (!file.there) continue;
      const auto [mine, theirs] = std::ranges::mismatch(file.tokens, query);
      best = std::max(best, static_cast<std::size_t>(mine - file.tokens.begin()));
    }
    return static_cast<TokenCount>(best);
  }
  // Other tokens that follow these in files that are there.
  std::set<Token> ways(const Tokens& tokens) const {
    std::set<Token> ways;
    for (const File& file : files) {
      if (file.there && file.tokens.size() > tokens.size() &&
          std::equal(tokens.begin(), tokens.end(), file.tokens.begin())) {
        ways.insert(file.tokens[tokens.size()]);
      }
    }
    return ways;
  }
  bool covers(const Tokens& tokens) const {
    const bool same = std::ranges::any_of(files, [&](const File& f) { return f.there && f.tokens == tokens; });
    return same || ways(tokens).size() == 1;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const File& file : files) sum += file.bytes;
    return sum;
  }
  File& of(std::uint64_t number) {
    return *std::ranges::find_if(files, [number](const File& file) { return file.number == number; });
  }
  void remove(std::uint64_t number) {
    files.remove_if([number](const File& file) { return file.number == number; });
    removed.insert(number);
  }
  void to_end(std::uint64_t number) {
    const auto at = std::ranges::find_if(files, [number](const File& file) { return file.number == number; });
    files.splice(files.end(), files, at);
  }
  // False when it is impossible; then nothing happens.
  bool make_room(std::uint64_t limit, std::uint64_t more) {
    std::list<File> left = files;
    std::set<std::uint64_t> going;
    std::uint64_t sum = bytes();
    for (const File& file : files) {
      if (sum + more <= limit) break;
      if (!file.there) continue;
      sum -= file.bytes;
      going.insert(file.number);
    }
    if (sum + more > limit) return false;
    for (const std::uint64_t number : going) remove(number);
    return true;
  }
  void written(std::uint64_t number) {
    of(number).there = true;
    to_end(number);
    const Tokens tokens = of(number).tokens;
    for (std::size_t length = tokens.size() - 1; length > 0; --length) {
      const Tokens prefix(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
      for (const File& file : std::list<File>(files)) {
        if (file.there && file.tokens == prefix && ways(prefix).size() == 1) remove(file.number);
      }
    }
  }

  std::list<File> files;
  std::set<std::uint64_t> removed;
};

TEST_F(SnapshotStoreTest, DoesWhatTheSimplestStoreDoes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::uint64_t limit = 2000 + below(20'000);
    SnapshotStore store({.bytes = limit});
    StoreReference reference;
    std::vector<std::uint64_t> writing;
    std::set<std::uint64_t> removed;
    for (int turn = 0; turn < 2000; ++turn) {
      // Few tokens and short texts, so that many begin alike.
      Tokens tokens(1 + below(8));
      std::ranges::generate(tokens, [&] { return static_cast<Token>(below(3)); });
      const std::size_t what = below(10);
      if (what < 4) {
        const std::uint64_t bytes = snapshot_file_bytes(tokens.size(), 1 + below(3000));
        const auto file = store.begin_write(kStoreKey, tokens, bytes - snapshot_file_bytes(tokens.size(), 0));
        const bool possible = !reference.covers(tokens) && reference.make_room(limit, bytes);
        ASSERT_EQ(file.has_value(), possible) << "seed " << seed << " turn " << turn;
        if (!file) continue;
        reference.files.push_back({*file, tokens, bytes, false});
        writing.push_back(*file);
      } else if (what < 7 && !writing.empty()) {
        const std::size_t place = below(writing.size());
        const std::uint64_t file = writing[place];
        writing.erase(writing.begin() + static_cast<std::ptrdiff_t>(place));
        // Two writes of the same tokens at once are not ordered by anybody.
        const bool fails = below(5) == 0 || reference.covers(reference.of(file).tokens);
        fails ? store.forget(file) : store.written(file);
        fails ? reference.remove(file) : reference.written(file);
      } else if (const SnapshotStore::Match match = store.match(kStoreKey, tokens, kWhole); match.length > 0) {
        ASSERT_EQ(match.length, reference.match(tokens)) << "seed " << seed << " turn " << turn;
        ASSERT_TRUE(std::equal(tokens.begin(), tokens.begin() + match.length, reference.of(match.file).tokens.begin()));
        below(4) == 0 ? store.forget(match.file) : store.touch(match.file);
        store.contains(match.file) ? reference.to_end(match.file) : reference.remove(match.file);
      } else {
        ASSERT_EQ(reference.match(tokens), 0);
      }
      for (const std::uint64_t file : removals(store)) ASSERT_TRUE(removed.insert(file).second) << "removed twice";
      ASSERT_EQ(removed, reference.removed) << "seed " << seed << " turn " << turn;
      ASSERT_EQ(store.stats().bytes, reference.bytes());
      ASSERT_LE(store.stats().bytes, limit);
      ASSERT_TRUE(store.consistent());
    }
  }
}

}  // namespace
}  // namespace chasqui
