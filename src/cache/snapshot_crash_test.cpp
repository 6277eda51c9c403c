// A process that writes one file again and again is killed, two hundred times: what is there afterwards is the last
// state that was acknowledged or the one after it, whole, and never a third. Every other time it is killed from outside
// at some moment, else by the kernel at some byte of a file, however fast this machine is.
#include <climits>
#include <csignal>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
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
constexpr int kNeverCut = INT_MAX;
constexpr int kUncutMax = 3;            // states before the one that is cut
constexpr rlim_t kLeastBytes = 20'000;  // of a state's KV

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

// No file of this process gets longer: a write beyond kills it.
void cut_files_at(rlim_t bytes) {
  const rlimit no_core{0, 0};
  const rlimit most{bytes, bytes};
  CHECK(::setrlimit(RLIMIT_CORE, &no_core) == 0 && ::setrlimit(RLIMIT_FSIZE, &most) == 0);
}

// Writes states from `first` on, and says so after each; the one after `uncut` of them is cut at `bytes`. Only a signal
// ends it.
[[noreturn]] void write_for_ever(const FakeFolder& folder, std::uint32_t first, int uncut, rlim_t bytes,
                                 int acknowledge) {
  const auto snapshots = open(folder);
  for (std::uint32_t state = first;; ++state) {
    if (uncut-- == 0) cut_files_at(bytes);
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

class SnapshotCrashTest : public ::testing::Test {
 protected:
  // A writer from the state on that is on disk, until a signal ends it; what it acknowledged last.
  void write_until_killed(int round) {
    const bool from_outside = round % 2 == 0;
    const int uncut = static_cast<int>(random_() % (kUncutMax + 1));
    const rlim_t bytes = random_() % kLeastBytes;
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) write_for_ever(folder_, state_ + 1, from_outside ? kNeverCut : uncut, bytes, pipe[1]);
    ::close(pipe[1]);
    acknowledged_ = state_;
    if (from_outside) {
      acknowledged_ = read_acknowledged(pipe[0], state_, uncut);
      spin(random_);
      ASSERT_EQ(::kill(writer, SIGKILL), 0);
    }
    acknowledged_ = read_acknowledged(pipe[0], acknowledged_, INT_MAX);
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    ASSERT_EQ(WTERMSIG(status), from_outside ? SIGKILL : SIGXFSZ);
    if (!from_outside) {
      ASSERT_EQ(acknowledged_, state_ + static_cast<std::uint32_t>(uncut));
    }
  }

  int names_that_end_in(const char* ending) const {
    const auto ends = [&](const std::string& name) { return name.ends_with(ending); };
    return static_cast<int>(std::ranges::count_if(folder_.names("snapshots"), ends));
  }

  const FakeFolder folder_;
  std::mt19937_64 random_{20261121};
  std::uint32_t state_ = 0;
  std::uint32_t acknowledged_ = 0;
};

TEST_F(SnapshotCrashTest, LeavesTheStateBeforeOrTheStateAfterAndNeverAThird) {
  int inside = 0;  // rounds in which a write was cut
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(write_until_killed(round)) << "round " << round;
    const auto snapshots = open(folder_);  // the lock went with the process
    inside += names_that_end_in(".part");
    state_ = state_on_disk(*snapshots, acknowledged_);
    const std::vector<FoundSnapshot> found = snapshots->scan({});
    ASSERT_EQ(found.size(), state_ == 0 ? 0u : 1u) << "round " << round;
    EXPECT_EQ(names_that_end_in(".kv") + names_that_end_in("lock"), static_cast<int>(folder_.names("snapshots").size()))
        << "something is left behind";
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(state_, static_cast<std::uint32_t>(kRounds) / 4) << "they were killed before they wrote anything";
  EXPECT_GE(inside, kRounds / 2) << "they were not killed while they wrote";
}

}  // namespace
}  // namespace chasqui
