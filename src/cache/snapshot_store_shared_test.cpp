// Files that nodes share, beside those of the folder.
#include <gtest/gtest.h>

#include "cache/snapshot_store.h"
#include "core/fake_requests.h"
#include "core/fake_tokens.h"

namespace chasqui {
namespace {

constexpr LastingKey kSharedKey{1, 0};
constexpr TokenCount kEveryToken = INT32_MAX;
constexpr std::uint64_t kSharedKv = 1000;

FoundSnapshot shared_file(std::uint64_t number, const std::vector<Token>& tokens, LastingKey key = kSharedKey) {
  return {kSharedFiles + number, snapshot_file_bytes(tokens.size(), kSharedKv), true, key, tokens};
}

class SharedFiles : public testing::Test {
 protected:
  std::uint64_t write(const std::vector<Token>& tokens) {
    const auto file = store_.begin_write(kSharedKey, tokens, kSharedKv);
    if (!file) return 0;
    store_.written(*file);
    EXPECT_TRUE(store_.consistent());
    return *file;
  }

  const std::vector<Token> prompt_ = test_prompt(10);
  SnapshotStore store_{{.bytes = 2 * snapshot_file_bytes(10, kSharedKv)}};
};

TEST_F(SharedFiles, AreFoundApartFromThoseOfTheFolder) {
  store_.found(shared_file(1, prompt_));
  EXPECT_EQ(store_.match(kSharedKey, prompt_, kEveryToken).length, 0);
  EXPECT_EQ(store_.match_shared(kSharedKey, prompt_, kEveryToken).length, 10);
  EXPECT_EQ(store_.match_shared(kSharedKey, prompt_, kEveryToken).kv_bytes, kSharedKv);
  EXPECT_EQ(store_.match_shared({2, 0}, prompt_, kEveryToken).length, 0) << "of another tenant";
  EXPECT_FALSE(store_.covers(kSharedKey, prompt_)) << "the folder has no copy";
  const std::uint64_t own = write(prompt_);
  EXPECT_NE(own, 0u);
  EXPECT_EQ(store_.match(kSharedKey, prompt_, kEveryToken).file, own);
  EXPECT_EQ(store_.match_shared(kSharedKey, prompt_, kEveryToken).file, kSharedFiles + 1);
}

TEST_F(SharedFiles, TakeNoRoomAndMakeNone) {
  for (std::uint64_t i = 0; i < 100; ++i) store_.found(shared_file(i, test_prompt(10, i)));
  EXPECT_EQ(store_.stats().bytes, 0u);
  EXPECT_EQ(store_.stats().files, 0u);
  EXPECT_EQ(store_.stats().shared, 100u);
  for (std::uint64_t i = 200; i < 203; ++i) EXPECT_NE(write(test_prompt(10, i)), 0u);
  EXPECT_EQ(store_.stats().files, 2u);
  EXPECT_EQ(store_.stats().shared, 100u);
  EXPECT_EQ(store_.stats().evictions, 1u);
}

TEST_F(SharedFiles, MayBeFoundTwiceAndForgottenOnce) {
  store_.found(shared_file(1, prompt_));
  store_.found(shared_file(1, prompt_));
  EXPECT_EQ(store_.stats().shared, 1u);
  store_.touch(kSharedFiles + 1);
  EXPECT_TRUE(store_.consistent());
  store_.forget(kSharedFiles + 1);
  EXPECT_EQ(store_.match_shared(kSharedKey, prompt_, kEveryToken).length, 0);
  EXPECT_TRUE(store_.consistent());
  EXPECT_EQ(store_.stats().shared, 0u);
}

TEST_F(SharedFiles, AreATenantsFilesLikeOthers) {
  store_.found(shared_file(1, prompt_));
  store_.found(shared_file(2, prompt_, {2, 0}));
  const std::uint64_t own = write(prompt_);
  EXPECT_EQ(store_.files_of(1), (std::vector<std::uint64_t>{own, kSharedFiles + 1}));
}

TEST_F(SharedFiles, AreBounded) {
  for (std::uint64_t i = 0; i < 20'000; ++i) store_.found(shared_file(i, {static_cast<Token>(i), 1}));
  EXPECT_LT(store_.stats().shared, 20'000u);
  SnapshotStore long_ones({.bytes = 1 << 20});
  for (std::uint64_t i = 0; i < 80; ++i) long_ones.found(shared_file(i, test_prompt(1'000'000, i)));
  EXPECT_EQ(long_ones.stats().shared, 67u) << "so many have 2^26 tokens";
  EXPECT_NE(write(prompt_), 0u);
}

}  // namespace
}  // namespace chasqui
