#include "cache/snapshot_file.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/checksum.h"
#include "cache/fake_folder.h"
#include "core/fake_requests.h"

namespace chasqui {
namespace {

using Bytes = std::vector<std::byte>;

constexpr LastingKey kFileKey{0x1122334455667788, 7};
constexpr std::size_t kHeadBytes = 104;
const std::string kName = "snapshot";

class SnapshotFile : public testing::Test {
 protected:
  // A small file, and what it is made of.
  void write(TokenCount tokens = 20, std::size_t kv_bytes = 300) {
    tokens_ = test_prompt(tokens);
    kv_ = fake_kv(tokens, kv_bytes);
    ASSERT_TRUE(write_snapshot(folder_.fd(), kName, fake_identity(), kFileKey, tokens_, *kv_).has_value());
  }
  Result<LoadedSnapshot> read(const SnapshotLimits& limits = {}) const {
    return read_snapshot(folder_.fd(), kName, fake_identity(), limits);
  }
  ErrorCode refusal(const SnapshotLimits& limits = {}) const {
    const auto loaded = read(limits);
    EXPECT_FALSE(loaded.has_value());
    return loaded ? ErrorCode::internal : loaded.error().code;
  }
  void expect_good() const {
    const auto loaded = read();
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    EXPECT_EQ(loaded->head.key, kFileKey);
    EXPECT_EQ(loaded->head.tokens, tokens_);
    EXPECT_EQ(loaded->head.kv_bytes, kv_->bytes().size());
    EXPECT_EQ(loaded->kv->tokens(), kv_->tokens());
    EXPECT_TRUE(same_bytes(*loaded->kv, *kv_));
  }

  FakeFolder folder_;
  std::vector<Token> tokens_;
  KvSnapshotPtr kv_;
};

TEST_F(SnapshotFile, HasWhatWasWritten) {
  for (const auto& [tokens, bytes] :
       std::vector<std::pair<TokenCount, std::size_t>>{{1, 1}, {1, 5000}, {999, 1}, {20, 300}, {3000, 1'000'000}}) {
    write(tokens, bytes);
    expect_good();
    EXPECT_EQ(folder_.bytes(kName).size(), snapshot_file_bytes(tokens_.size(), bytes));
    EXPECT_EQ(folder_.names(), std::vector<std::string>{kName}) << "nothing is left of the writing";
  }
}

TEST_F(SnapshotFile, HasItsBlocksAgain) {
  tokens_.resize(23);
  const auto kv = KvSnapshot::with_room(23 * 6, 23, 4);
  unsigned next = 0;
  for (std::size_t i = 0; i < kv->blocks().size(); ++i) {
    for (std::byte& byte : kv->writable(i)) byte = static_cast<std::byte>(next++);
  }
  ASSERT_TRUE(write_snapshot(folder_.fd(), kName, fake_identity(), kFileKey, tokens_, *kv).has_value());
  const auto loaded = read();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->head.kv_bytes, 23u * 6);
  ASSERT_EQ(loaded->kv->block_tokens(), 4);
  ASSERT_EQ(loaded->kv->blocks().size(), 6u);
  next = 0;
  for (const KvBlockPtr& block : loaded->kv->blocks()) {
    for (const std::byte byte : block->bytes()) ASSERT_EQ(byte, static_cast<std::byte>(next++));
  }
}

TEST_F(SnapshotFile, TellsItsHeadWithoutTheKv) {
  write();
  Bytes bytes = folder_.bytes(kName);
  bytes.back() ^= std::byte{1};  // which only the whole shows
  folder_.put(kName, bytes);
  const auto head = read_snapshot_head(folder_.fd(), kName, fake_identity(), {});
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->key, kFileKey);
  EXPECT_EQ(head->tokens, tokens_);
  EXPECT_EQ(head->kv_bytes, 300u);
  EXPECT_EQ(refusal(), ErrorCode::invalid_request);
}

TEST_F(SnapshotFile, KeepsTokensThatAreNotOfAnyVocabulary) {
  tokens_ = {INT32_MIN, -1, 0, INT32_MAX};
  kv_ = fake_kv(4, 10);
  ASSERT_TRUE(write_snapshot(folder_.fd(), kName, fake_identity(), kFileKey, tokens_, *kv_).has_value());
  expect_good();
}

TEST_F(SnapshotFile, IsReadByItsUserOnly) {
  write();
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / kName).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(SnapshotFile, IsRefusedForOthersThanItsModelAndItsSettings) {
  write();
  for (const ModelIdentity& other : {fake_identity(2, 1), fake_identity(1, 2)}) {
    const auto loaded = read_snapshot(folder_.fd(), kName, other, {});
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().code, ErrorCode::conflict) << loaded.error().message;
  }
}

TEST_F(SnapshotFile, IsRefusedWhenItIsLargerThanAllowed) {
  write(20, 300);
  EXPECT_TRUE(read({.kv_bytes = 300, .tokens = 20}).has_value());
  EXPECT_EQ(refusal({.kv_bytes = 299, .tokens = 20}), ErrorCode::too_large);
  EXPECT_EQ(refusal({.kv_bytes = 300, .tokens = 19}), ErrorCode::too_large);
}

TEST_F(SnapshotFile, IsRefusedCutAnywhere) {
  write();
  const Bytes whole = folder_.bytes(kName);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    folder_.put(kName, std::span(whole).first(length));
    EXPECT_EQ(refusal(), ErrorCode::invalid_request) << length;
    EXPECT_FALSE(read_snapshot_head(folder_.fd(), kName, fake_identity(), {}).has_value()) << length;
  }
  folder_.put(kName, whole);
  expect_good();
}

TEST_F(SnapshotFile, IsRefusedWithAnythingBehindIt) {
  write();
  Bytes longer = folder_.bytes(kName);
  longer.push_back(std::byte{0});
  folder_.put(kName, longer);
  EXPECT_EQ(refusal(), ErrorCode::invalid_request);
}

// A file of another size, with other bytes, with pieces swapped, doubled or emptied: whatever happens to it.
Bytes mutate(const Bytes& whole, std::mt19937_64& random) {
  Bytes bytes = whole;
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::size_t at = below(3) == 0 ? below(kHeadBytes) : below(bytes.size());
  const std::size_t length = std::min<std::size_t>(1 + below(below(2) == 0 ? 8 : 200), bytes.size() - at);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(length);
  switch (below(8)) {
    case 0: bytes[at] ^= static_cast<std::byte>(1 << below(8)); break;
    case 1: std::generate(begin, end, [&] { return static_cast<std::byte>(random()); }); break;
    case 2: std::fill(begin, end, below(2) == 0 ? std::byte{0} : std::byte{0xFF}); break;
    case 3: bytes.erase(begin, end); break;
    case 4: bytes.insert(begin, length, static_cast<std::byte>(random())); break;
    case 5: std::reverse(begin, end); break;
    case 6: bytes.resize(at); break;
    default: {
      const std::size_t other = below(bytes.size() - length + 1);
      std::swap_ranges(begin, end, bytes.begin() + static_cast<std::ptrdiff_t>(other > at ? at : other));
    }
  }
  return bytes;
}

TEST_F(SnapshotFile, TenThousandMutationsAndNoneIsTakenForAnything) {
  write(50, 600);
  const Bytes whole = folder_.bytes(kName);
  std::mt19937_64 random(20261121);
  int same = 0;
  for (int i = 0; i < 10'000; ++i) {
    Bytes bytes = mutate(whole, random);
    if (i % 4 == 0) bytes = mutate(bytes.size() > kHeadBytes ? bytes : whole, random);
    folder_.put(kName, bytes);
    if (bytes == whole) {
      ++same;
      expect_good();
    } else {
      EXPECT_FALSE(read().has_value()) << "mutation " << i;
    }
  }
  EXPECT_LT(same, 1000);
}

// An attacker changes numbers and makes the checksum fit.
class HostileNumbers : public SnapshotFile {
 protected:
  template <class Number>
  ErrorCode refusal_with(std::size_t at, Number number) {
    write();
    Bytes bytes = folder_.bytes(kName);
    std::memcpy(&bytes[at], &number, sizeof number);
    const std::size_t tokens_end = kHeadBytes + 4 * tokens_.size();
    Checksummer sum;
    sum.add(std::span(bytes).first(88));
    sum.add(std::span(bytes).subspan(kHeadBytes, tokens_end - kHeadBytes));
    std::ranges::copy(sum.result(), bytes.begin() + 88);
    folder_.put(kName, bytes);
    return refusal();
  }
};

TEST_F(HostileNumbers, AreRefusedBeforeAnythingIsMadeForThem) {
  EXPECT_EQ(refusal_with<std::uint32_t>(8, 2), ErrorCode::conflict) << "a version that we do not know";
  EXPECT_EQ(refusal_with<std::uint32_t>(8, 0), ErrorCode::conflict);
  EXPECT_EQ(refusal_with<std::uint32_t>(12, 0), ErrorCode::invalid_request) << "no tokens";
  EXPECT_EQ(refusal_with<std::uint32_t>(12, 19), ErrorCode::invalid_request);
  EXPECT_EQ(refusal_with<std::uint32_t>(12, 21), ErrorCode::invalid_request);
  EXPECT_EQ(refusal_with<std::uint32_t>(12, 1 << 24), ErrorCode::invalid_request) << "just allowed, and not there";
  EXPECT_EQ(refusal_with<std::uint32_t>(12, UINT32_MAX), ErrorCode::too_large);
  EXPECT_EQ(refusal_with<std::uint64_t>(16, 0), ErrorCode::invalid_request) << "no KV";
  EXPECT_EQ(refusal_with<std::uint64_t>(16, 299), ErrorCode::invalid_request);
  EXPECT_EQ(refusal_with<std::uint64_t>(16, std::uint64_t{1} << 40), ErrorCode::invalid_request);
  EXPECT_EQ(refusal_with<std::uint64_t>(16, std::uint64_t{1} << 63), ErrorCode::too_large);
  EXPECT_EQ(refusal_with<std::uint64_t>(16, UINT64_MAX), ErrorCode::too_large);
  // The sum of the sizes overflows to the right one.
  EXPECT_EQ(refusal_with<std::uint64_t>(16, std::uint64_t{0} - kHeadBytes - 80), ErrorCode::too_large);
}

// Everything fits, and there is nothing in it.
TEST_F(HostileNumbers, DoNotMakeAnEmptySnapshot) {
  write(20, 300);
  const Bytes whole = folder_.bytes(kName);
  for (const bool tokens : {true, false}) {
    Bytes bytes = whole;
    const auto begin = bytes.begin() + kHeadBytes;
    bytes.erase(tokens ? begin : begin + 80, tokens ? begin + 80 : bytes.end());
    std::ranges::fill(std::span(bytes).subspan(tokens ? 12 : 16, tokens ? 4 : 8), std::byte{0});
    std::ranges::copy(checksum(std::span(bytes).subspan(tokens ? kHeadBytes : bytes.size())), bytes.begin() + 72);
    Checksummer sum;
    sum.add(std::span(bytes).first(88));
    if (!tokens) sum.add(std::span(bytes).subspan(kHeadBytes));
    std::ranges::copy(sum.result(), bytes.begin() + 88);
    folder_.put(kName, bytes);
    EXPECT_EQ(refusal(), ErrorCode::invalid_request);
  }
}

TEST_F(HostileNumbers, NeitherDoTokensAndKvTradePlaces) {
  write(20, 300);
  Bytes bytes = folder_.bytes(kName);
  const std::uint32_t tokens = 20 + 75;  // all of the KV, in fours
  const std::uint64_t kv_bytes = 0;
  std::memcpy(&bytes[12], &tokens, sizeof tokens);
  std::memcpy(&bytes[16], &kv_bytes, sizeof kv_bytes);
  folder_.put(kName, bytes);
  EXPECT_EQ(refusal(), ErrorCode::invalid_request);
}

TEST_F(SnapshotFile, IsRefusedWhenItIsNoFile) {
  EXPECT_EQ(refusal(), ErrorCode::not_found);
  ASSERT_EQ(::mkfifo((folder_ / kName).c_str(), 0600), 0);
  EXPECT_EQ(refusal(), ErrorCode::invalid_request) << "a pipe without a writer";
  std::filesystem::remove(folder_ / kName);
  std::filesystem::create_directory(folder_ / kName);
  EXPECT_EQ(refusal(), ErrorCode::invalid_request) << "a folder";
  std::filesystem::remove(folder_ / kName);
  write();
  std::filesystem::rename(folder_ / kName, folder_ / "other");
  std::filesystem::create_symlink("other", folder_ / kName);
  EXPECT_EQ(refusal(), ErrorCode::invalid_request) << "a link, even to a good one";
}

TEST_F(SnapshotFile, IsWrittenOverWhatAnEarlierEndLeftBehind) {
  folder_.put(kName + ".part", Bytes(1000, std::byte{1}));
  write();
  expect_good();
  EXPECT_EQ(folder_.names(), std::vector<std::string>{kName});
}

TEST_F(SnapshotFile, StaysAsItWasWhenANewOneCannotBeWritten) {
  write();
  const Bytes before = folder_.bytes(kName);
  std::filesystem::create_directories(folder_ / (kName + ".part") / "in the way");
  const auto written = write_snapshot(folder_.fd(), kName, fake_identity(), kFileKey, test_prompt(5), *fake_kv(5, 100));
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
  EXPECT_EQ(folder_.bytes(kName), before);
}

// A disk that is full in the middle of a write, made of a limit that a process can set itself.
TEST_F(SnapshotFile, LeavesNothingOfAWriteThatFindsTheDiskFull) {
  write(20, 300);
  const Bytes before = folder_.bytes(kName);
  sigset_t too_large;
  sigset_t old;
  sigemptyset(&too_large);
  sigaddset(&too_large, SIGXFSZ);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &too_large, &old), 0);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{1000, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written =
      write_snapshot(folder_.fd(), kName, fake_identity(), kFileKey, test_prompt(5), *fake_kv(5, 100'000));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const timespec at_once{};
  ::sigtimedwait(&too_large, nullptr, &at_once);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &old, nullptr), 0);
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
  EXPECT_EQ(folder_.bytes(kName), before);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{kName});
}

TEST_F(SnapshotFile, CannotBeWrittenWhereTheFolderHasGone) {
  std::filesystem::remove_all(folder_.path());
  EXPECT_FALSE(
      write_snapshot(folder_.fd(), kName, fake_identity(), kFileKey, test_prompt(5), *fake_kv(5, 9)).has_value());
}

// Files of one version stay readable: this one was written by the first, byte for byte.
TEST_F(SnapshotFile, IsLaidOutAsTheHeaderSays) {
  write(2, 3);
  const Bytes bytes = folder_.bytes(kName);
  ASSERT_EQ(bytes.size(), 104u + 8 + 3);
  EXPECT_EQ(std::memcmp(bytes.data(), "ChasquiK\1\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0", 24), 0);
  EXPECT_EQ(std::memcmp(&bytes[24], "\x88\x77\x66\x55\x44\x33\x22\x11\7\0\0\0\0\0\0\0", 16), 0);
  EXPECT_TRUE(std::all_of(bytes.begin() + 40, bytes.begin() + 72, [](std::byte b) { return b == std::byte{1}; }));
  EXPECT_TRUE(std::ranges::equal(checksum(kv_->bytes()), std::span(bytes).subspan(72, 16)));
  EXPECT_EQ(std::memcmp(&bytes[104], tokens_.data(), 8), 0);
  EXPECT_TRUE(std::ranges::equal(kv_->bytes(), std::span(bytes).subspan(112)));
}

TEST_F(SnapshotFile, IsTheSameInMemory) {
  write();
  const std::vector<std::byte> packed = pack_snapshot(fake_identity(), kFileKey, tokens_, *kv_);
  ASSERT_EQ(packed, folder_.bytes(kName));
  const auto loaded = unpack_snapshot(packed, fake_identity(), {});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->head.tokens, tokens_);
  EXPECT_TRUE(same_bytes(*loaded->kv, *kv_));
  for (std::size_t at = 0; at < packed.size(); ++at) {
    std::vector<std::byte> changed = packed;
    changed[at] ^= std::byte{4};
    EXPECT_FALSE(unpack_snapshot(changed, fake_identity(), {})) << at;
    EXPECT_FALSE(unpack_snapshot(std::span(packed).first(at), fake_identity(), {})) << at;
  }
}

}  // namespace
}  // namespace chasqui
