#include "publish/kv_channel.h"

#include <gtest/gtest.h>

#include "core/fake_tokens.h"
#include "publish/fake_router.h"

namespace chasqui::publish {
namespace {

using Tokens = std::vector<Token>;
using Prefixes = std::set<Tokens>;

std::vector<KvBatch> since(KvChannel& channel, std::uint64_t number, double now, std::vector<KvBatch>& out) {
  std::vector<KvBatch> repeated;
  for (number = channel.repeats_from(number, now, out); const KvBatch* batch = channel.kept(number); ++number) {
    repeated.push_back(*batch);
  }
  EXPECT_EQ(number, channel.next());
  return repeated;
}

// A worker's log, a channel, and a router that misses nothing.
class KvChannelTest : public testing::Test {
 protected:
  std::uint64_t hold(const Tokens& tokens, Medium medium = Medium::memory) {
    return medium == Medium::memory ? log_.hold(PrefixKey{}, tokens) : log_.hold(LastingKey{}, tokens);
  }
  std::vector<KvBatch> publish() {
    log_.flush();
    std::vector<KvBatch> out;
    channel_.apply({.changes = std::exchange(waiting_, {}), .names = std::exchange(names_, std::nullopt)}, 1.5, out);
    router_.read(out);
    return out;
  }

  HoldingChanges waiting_;
  std::optional<AdapterNames> names_;
  HoldingLog log_{{}, 1, [this](HoldingChanges& changes) { waiting_.add(changes); }};
  KvEventMetrics metrics_;
  KvChannel channel_{BlockHasher({7, 8}), metrics_, {.batches = 4, .bytes = 1 << 20}};
  FakeRouter router_;
};

TEST_F(KvChannelTest, BeginsByClearingAll) {
  const auto batches = publish();
  ASSERT_EQ(batches.size(), 1U);
  const std::string head = "\x93\xCB\x3F\xF8";
  EXPECT_TRUE(batches.front().payload->starts_with(head)) << "three members, the first of them 1.5";
  EXPECT_EQ(router_.cleared, 1U);
  EXPECT_TRUE(publish().empty()) << "nothing has changed";
}

TEST_F(KvChannelTest, TellsOfWholeBlocks) {
  hold(counting(63));
  EXPECT_EQ(publish().size(), 1U);
  hold(counting(200));
  publish();
  EXPECT_EQ(router_.prefixes(), (Prefixes{counting(64), counting(128), counting(192)}));
  EXPECT_EQ(metrics_.held.value(), 3);
  EXPECT_EQ(metrics_.stored.value(), 3U);
}

TEST_F(KvChannelTest, TellsOfABlockOnceForAllThatHoldIt) {
  const auto first = hold(counting(128));
  publish();
  const auto second = hold(with(counting(64), counting(64, 1000)));
  publish();
  log_.drop(first);
  publish();
  EXPECT_EQ(router_.prefixes(), (Prefixes{counting(64), with(counting(64), counting(64, 1000))}));
  log_.drop(second);
  publish();
  EXPECT_TRUE(router_.prefixes().empty());
  EXPECT_EQ(metrics_.held.value(), 0);
}

TEST_F(KvChannelTest, LeavesOutWhatComesBackAtOnce) {
  const auto turn = hold(counting(128));
  publish();
  log_.drop(turn);
  hold(counting(192));
  const auto batches = publish();
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(metrics_.removed.value(), 0U);
  EXPECT_EQ(metrics_.stored.value(), 3U) << "of the next turn only what is new";
  const auto brief = hold(counting(64, 500));
  log_.drop(brief);
  EXPECT_TRUE(publish().empty());
}

TEST_F(KvChannelTest, TellsMediaApart) {
  const auto snapshot = hold(counting(64));
  hold(counting(128), Medium::disk);
  publish();
  EXPECT_EQ(router_.prefixes("GPU"), (Prefixes{counting(64)}));
  EXPECT_EQ(router_.prefixes("DISK"), (Prefixes{counting(64), counting(128)}));
  log_.drop(snapshot);
  publish();
  EXPECT_TRUE(router_.prefixes("GPU").empty());
  EXPECT_EQ(router_.prefixes("DISK").size(), 2U);
}

TEST_F(KvChannelTest, SaysNothingOfOtherTenantsAndOfPictures) {
  EXPECT_EQ(log_.hold(PrefixKey{.tenant = 3}, counting(64)), 0U);
  log_.drop(0);
  hold(with(with(counting(70), {-5}), counting(200)));
  publish();
  EXPECT_EQ(router_.prefixes(), (Prefixes{counting(64)})) << "up to the picture";
}

TEST_F(KvChannelTest, TellsWhatRoutersCanName) {
  const PrefixKey styled{.adapters = 5};
  log_.hold(styled, counting(64));
  hold(counting(128, 1000));
  publish();
  EXPECT_EQ(router_.prefixes(), (Prefixes{counting(64, 1000), counting(128, 1000)}));
  names_ = {{0, ""}, {5, "style"}};
  publish();
  EXPECT_EQ(router_.prefixes("GPU", "style"), (Prefixes{counting(64)}));
  EXPECT_EQ(router_.cleared, 1U);
  // From now on requests that say nothing get the adapter, and none gets the model alone.
  names_ = {{5, ""}};
  publish();
  EXPECT_EQ(router_.cleared, 2U);
  EXPECT_EQ(router_.prefixes(), (Prefixes{counting(64)}));
  EXPECT_EQ(metrics_.held.value(), 1);
  names_ = {{0, ""}, {5, "style"}};
  publish();
  EXPECT_EQ(router_.prefixes().size(), 2U);
  EXPECT_EQ(metrics_.held.value(), 3);
}

TEST_F(KvChannelTest, RepeatsWhatIsKept) {
  hold(counting(64));
  publish();
  FakeRouter late = router_;
  hold(counting(128, 1000));
  publish();
  std::vector<KvBatch> out;
  late.read(since(channel_, late.next, 2, out));
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(late.prefixes(), router_.prefixes());
  EXPECT_TRUE(since(channel_, late.next, 2, out).empty()) << "it has all";
}

TEST_F(KvChannelTest, TellsAllAgainWhereTooMuchWasMissed) {
  for (Token i = 0; i < 9; ++i) {
    hold(counting(64, 1000 * i));
    publish();
  }
  std::vector<KvBatch> out;
  const auto repeated = since(channel_, 0, 2, out);
  ASSERT_FALSE(out.empty());
  router_.read(out);
  FakeRouter late;
  late.next = repeated.front().number;
  late.read(repeated);
  EXPECT_EQ(late.prefixes(), router_.prefixes());
  EXPECT_EQ(late.prefixes().size(), 9U);
  EXPECT_EQ(late.next, router_.next);
  // The next one that is as late gets the same, and the others are left alone.
  out.clear();
  EXPECT_EQ(since(channel_, 1, 2, out).size(), repeated.size());
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(since(channel_, 1'000'000, 2, out).size(), repeated.size()) << "a number of an earlier process";
  EXPECT_EQ(metrics_.told_again.value(), 1U);
}

TEST_F(KvChannelTest, EndsWhenAWorkerEnds) {
  hold(counting(64));
  publish();
  HoldingChanges rest;
  {
    HoldingLog other({}, 1000, [&rest](HoldingChanges& changes) { rest.add(changes); });
    other.hold(PrefixKey{}, counting(128));
    other.flush();
    std::vector<KvBatch> out;
    channel_.apply({.changes = std::exchange(rest, {})}, 2, out);
    router_.read(out);
    EXPECT_EQ(router_.prefixes().size(), 2U);
  }
  std::vector<KvBatch> out;
  channel_.apply({.changes = std::exchange(rest, {})}, 2, out);
  router_.read(out);
  EXPECT_EQ(router_.prefixes().size(), 1U) << "what the other worker has stays";
}

TEST_F(KvChannelTest, CutsLongTalesIntoBatches) {
  hold(counting(64 * 400));
  const auto batches = publish();
  EXPECT_GT(batches.size(), 1U);
  EXPECT_EQ(router_.prefixes().size(), 400U);
  EXPECT_GT(metrics_.kept_bytes.value(), 64 * 1024);
}

TEST_F(KvChannelTest, RepeatsATellingThatIsMoreThanIsKept) {
  KvEventMetrics metrics;
  KvChannel channel{BlockHasher({7, 8}), metrics, {.batches = 2, .bytes = 100'000}};
  const auto apply = [&] {
    std::vector<KvBatch> out;
    log_.flush();
    channel.apply({.changes = std::exchange(waiting_, {})}, 1, out);
    router_.read(out);
  };
  const auto repeats = [&] {
    std::vector<KvBatch> out;
    const auto repeated = since(channel, 1'000'000, 2, out);  // a number of an earlier process
    router_.read(out);
    FakeRouter late;
    late.next = repeated.front().number;
    late.read(repeated);
    EXPECT_EQ(late.cleared, 1U);
    EXPECT_EQ(late.prefixes(), router_.prefixes());
  };
  apply();
  for (Token i = 0; i < 1000; ++i) hold(counting(64, 1'000'000 + 100 * i));
  apply();
  std::vector<KvBatch> out;
  channel.tell_all(1, out);
  EXPECT_GT(out.size(), 2U);
  router_.read(out);
  repeats();
  EXPECT_EQ(router_.prefixes().size(), 1000U);
  for (Token i = 1; i < 6; ++i) {
    hold(counting(64, 100'000 * i));
    apply();
    repeats();
  }
  EXPECT_EQ(metrics.told_again.value(), 2U) << "not for each request";
}

TEST_F(KvChannelTest, KeepsNothingThatIsNotRepeated) {
  KvEventMetrics metrics;
  KvChannel channel{BlockHasher({7, 8}), metrics, {.batches = 0, .bytes = 0}};
  hold(counting(64));
  log_.flush();
  std::vector<KvBatch> out;
  channel.apply({.changes = waiting_}, 1, out);
  EXPECT_EQ(out.size(), 1U);
  EXPECT_EQ(channel.kept(0), nullptr);
  EXPECT_EQ(metrics.kept_bytes.value(), 0);
}

TEST_F(KvChannelTest, TakesNoPrefixForAnotherOfTheSameHash) {
  KvEventMetrics metrics;
  KvChannel channel{BlockHasher({7, 8}, 0), metrics};  // all blocks have one hash
  const auto first = hold(counting(128));
  const auto second = hold(counting(128, 1000));
  const auto told = [&] {
    std::vector<KvBatch> out;
    log_.flush();
    channel.apply({.changes = std::exchange(waiting_, {})}, 1, out);
    router_.read(out);
    return router_.prefixes().size();
  };
  EXPECT_EQ(told(), 1U) << "the first that has come";
  log_.drop(second);
  log_.drop(first);
  EXPECT_EQ(told(), 0U);
}

}  // namespace
}  // namespace chasqui::publish
