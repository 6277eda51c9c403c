// A process that writes one file again and again is killed at some point, two hundred times: what is there afterwards
// is the last state that was acknowledged or the one after it, whole, and never a third.
#include <climits>
#include <csignal>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/fake_folder.h"
#include "cache/snapshot_folder.h"
#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kFile = 7;
constexpr LastingKey kCrashKey{1, 2};
constexpr int kRounds = 200;

// The n-th state: tokens, KV and their sizes say which it is.
std::vector<Token> tokens_of(std::uint32_t state) {
  return test_prompt(static_cast<TokenCount>(10 + state % 50), state);
}
KvSnapshotPtr kv_of(std::uint32_t state) {
  return fake_kv(static_cast<TokenCount>(10 + state % 50), 20'000 + 1000 * (state % 200), state);
}

std::unique_ptr<SnapshotFolder> open(const FakeFolder& folder) {
  auto opened = SnapshotFolder::open(folder / "snapshots", fake_identity());
  CHECK(opened.has_value(), opened.error().message);
  return std::move(*opened);
}

// Writes states from `first` on, and says so after each. Only a kill ends it.
[[noreturn]] void write_for_ever(const FakeFolder& folder, std::uint32_t first, int acknowledge) {
  const auto snapshots = open(folder);
  for (std::uint32_t state = first;; ++state) {
    CHECK(snapshots->write(kFile, kCrashKey, tokens_of(state), *kv_of(state)).has_value());
    CHECK(::write(acknowledge, &state, sizeof state) == sizeof state);
  }
}

// The last state that was acknowledged; `known` when there is no new one.
std::uint32_t read_acknowledged(int pipe, std::uint32_t known, int most) {
  for (std::uint32_t state = 0; most > 0 && ::read(pipe, &state, sizeof state) == sizeof state; --most) known = state;
  return known;
}

// A random time that no clock measures, about as long as a few writes take.
void spin(std::mt19937_64& random) {
  volatile std::uint64_t turns = random() % 4'000'000;
  while (turns > 0) turns = turns - 1;
}

std::uint32_t state_on_disk(SnapshotFolder& folder, std::uint32_t acknowledged) {
  const auto loaded = folder.read(kFile, {});
  if (!loaded) {
    EXPECT_EQ(acknowledged, 0u) << "an acknowledged state is lost: " << loaded.error().message;
    EXPECT_EQ(loaded.error().code, ErrorCode::not_found);
    return 0;
  }
  for (const std::uint32_t state : {acknowledged, acknowledged + 1}) {
    if (state == 0 || loaded->head.tokens != tokens_of(state)) continue;
    EXPECT_TRUE(same_bytes(*loaded->kv, *kv_of(state)));
    return state;
  }
  ADD_FAILURE() << "a third state";
  return acknowledged;
}

TEST(SnapshotCrash, LeavesTheStateBeforeOrTheStateAfterAndNeverAThird) {
  const FakeFolder folder;
  std::mt19937_64 random(20261121);
  std::uint32_t state = 0;
  int inside = 0;  // rounds in which a write was cut
  for (int round = 0; round < kRounds; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) write_for_ever(folder, state + 1, pipe[1]);
    ::close(pipe[1]);
    std::uint32_t acknowledged = read_acknowledged(pipe[0], state, static_cast<int>(random() % 4));
    spin(random);
    ASSERT_EQ(::kill(writer, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself";
    acknowledged = read_acknowledged(pipe[0], acknowledged, INT_MAX);
    ::close(pipe[0]);

    const auto snapshots = open(folder);  // the lock went with the process
    for (const std::string& name : folder.names("snapshots")) inside += name.ends_with(".part") ? 1 : 0;
    state = state_on_disk(*snapshots, acknowledged);
    if (HasFailure()) FAIL() << "round " << round;
    const std::vector<FoundSnapshot> found = snapshots->scan({});
    ASSERT_EQ(found.size(), state == 0 ? 0u : 1u) << "round " << round;
    for (const std::string& name : folder.names("snapshots")) {
      EXPECT_TRUE(name == "lock" || name.ends_with(".kv")) << name << " is left behind";
    }
  }
  EXPECT_GT(state, static_cast<std::uint32_t>(kRounds) / 4) << "they were killed before they wrote anything";
  // Under ThreadSanitizer most of their time goes into making the bytes.
#ifdef __SANITIZE_THREAD__
  constexpr int kInside = 0;
#else
  constexpr int kInside = kRounds / 20;
#endif
  EXPECT_GT(inside, kInside) << "they were not killed while they wrote";
}

}  // namespace
}  // namespace chasqui
