// The decisions alone, without a scheduler: who waits, what is copied, what is brought back.
#include "sched/reuse.h"

#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr double kRow = 0.001;  // seconds

class ReuseTest : public testing::Test {
 protected:
  struct Ask {
    TokenCount prompt = 100;
    TokenCount shared = 90;
    ServiceClass service_class = kStandard;
    std::uint32_t tenant = 0;
    bool use_cache = true;
    bool deterministic = false;
  };

  std::unique_ptr<Sequence> sequence(const Ask& ask) {
    const std::uint64_t id = ++ids_;
    RequestDraft draft;
    draft.prompt = test_prompt(ask.shared, 1000);
    const std::vector<Token> own = test_prompt(ask.prompt - ask.shared, id);
    draft.prompt.insert(draft.prompt.end(), own.begin(), own.end());
    draft.service_class = ask.service_class;
    draft.tenant.id = ask.tenant;
    draft.use_cache = ask.use_cache;
    draft.deterministic = ask.deterministic;
    RequestLimits limits = test_limits();
    limits.context = 1000;
    return std::make_unique<Sequence>(test_request(id, std::move(draft), limits));
  }

  // It has a slot, and so many of its tokens are computed.
  Sequence& running(const Ask& ask, TokenCount computed) {
    auto fresh = sequence(ask);
    fresh->start(SlotId{static_cast<std::int32_t>(running_.size())}, now_);
    reuse_->started(*fresh, {}, now_);
    if (computed > 0) fresh->computed_rows(computed, now_);
    return *running_.emplace_back(std::move(fresh));
  }

  void leave(const Sequence& sequence) {
    reuse_->leaves(sequence);
    std::erase_if(running_, [&](const auto& each) { return each.get() == &sequence; });
  }

  // What is due is copied; gives the number of tokens of each copy.
  std::vector<TokenCount> save(bool can = true) {
    Batch batch;
    BatchResult result;
    reuse_->take_saves(running_, batch);
    std::vector<TokenCount> tokens;
    for (const SlotSave& each : batch.saves) {
      tokens.push_back(each.tokens);
      const std::size_t size = static_cast<std::size_t>(each.tokens) * bytes_per_token_;
      result.snapshots.push_back(can ? std::make_shared<KvSnapshot>(size, each.tokens) : nullptr);
    }
    reuse_->commit(batch, result, kRow, now_);
    EXPECT_FALSE(reuse_->has_saves());
    EXPECT_TRUE(reuse_->consistent());
    return tokens;
  }

  bool waits(const Sequence& sequence) {
    return reuse_->waits(sequence, running_) || reuse_->should_defer(sequence, running_, kRow);
  }
  PrefixCache::Match find(const Sequence& waiting, double row_seconds = kRow) {
    return reuse_->choose(waiting, row_seconds, true, now_).match;
  }
  TokenCount found(const Ask& ask) { return find(*sequence(ask)).length; }

  // A restore of all of `match` takes so long.
  void restore(const PrefixCache::Match& match, Duration took) {
    Batch batch;
    batch.restores = {{RequestId{1}, SlotId{0}, match.snapshot, match.length}};
    BatchResult result;
    result.restoring = took;
    reuse_->commit(batch, result, kRow, now_);
  }

  void configure(std::size_t bytes, bool cut_anywhere = true, bool shared = false) {
    ReuseConfig config;
    config.cache.bytes = bytes;
    config.cache.cut_anywhere = cut_anywhere;
    config.shared_by_tenants = shared;
    reuse_.emplace(config);
  }

  void SetUp() override { configure(1 << 20); }

  std::optional<Reuse> reuse_;
  RunningSequences running_;
  TimePoint now_ = TimePoint{} + seconds(1);
  std::size_t bytes_per_token_ = 10;
  std::uint64_t ids_ = 0;
};

TEST_F(ReuseTest, WhoLeavesIsFoundByWhoComes) {
  leave(running({}, 100));
  EXPECT_TRUE(reuse_->has_saves());
  EXPECT_EQ(found({}), 0) << "on its way";
  EXPECT_EQ(save(), (std::vector<TokenCount>{100}));
  EXPECT_EQ(found({}), 90);
  EXPECT_EQ(found({.prompt = 91, .shared = 90}), 90);
  EXPECT_EQ(found({.prompt = 90, .shared = 90}), 89) << "one is always left to compute";
  EXPECT_EQ(found({.tenant = 1}), 0);
  EXPECT_EQ(found({.use_cache = false}), 0);
}

TEST_F(ReuseTest, AFewNewTokensAreNotWorthACopy) {
  leave(running({.prompt = 7, .shared = 7}, 7));
  EXPECT_FALSE(reuse_->has_saves());
  leave(running({}, 90));
  save();
  leave(running({}, 97));
  EXPECT_FALSE(reuse_->has_saves()) << "7 of its own";
  leave(running({}, 98));
  EXPECT_TRUE(reuse_->has_saves());
  leave(running({.use_cache = false}, 100));
  EXPECT_EQ(save().size(), 1u);
}

TEST_F(ReuseTest, ASlotThatAnotherNeedsIsCopiedInTheSameStep) {
  Sequence& victim = running({}, 60);
  Batch batch;
  reuse_->leaves(victim, batch);
  ASSERT_EQ(batch.saves.size(), 1u);
  EXPECT_EQ(batch.saves[0].slot, victim.slot());
  EXPECT_EQ(batch.saves[0].tokens, 60);
  EXPECT_FALSE(reuse_->has_saves());
  BatchResult result;
  result.snapshots.push_back(std::make_shared<KvSnapshot>(600, 60));
  reuse_->commit(batch, result, kRow, now_);
  EXPECT_EQ(found({}), 60);
}

// A deterministic request leaves whole chunks of 128 to others, and of a short prompt nothing.
TEST_F(ReuseTest, WaitsOnlyForWhatADeterministicRequestLeaves) {
  for (const bool late : {false, true}) {
    configure(1 << 20);
    running_.clear();
    Sequence& source = running({.prompt = 90, .deterministic = true}, late ? 90 : 0);
    EXPECT_FALSE(waits(*sequence({.deterministic = true}))) << "for none of its 90";
    if (!late) source.computed_rows(90, now_);
    reuse_->step_computed(running_);
    EXPECT_FALSE(reuse_->has_saves());
  }
  configure(1 << 20);
  running_.clear();
  Sequence& source = running({.prompt = 200, .shared = 200, .deterministic = true}, 0);
  EXPECT_TRUE(waits(*sequence({.prompt = 300, .shared = 200, .deterministic = true})));
  source.computed_rows(128, now_);
  reuse_->step_computed(running_);
  EXPECT_EQ(save(), (std::vector<TokenCount>{128}));
}

TEST_F(ReuseTest, WaitsUntilTheCommonPartIsComputedAndCopied) {
  Sequence& source = running({}, 30);
  const auto waiting = sequence({});
  EXPECT_TRUE(waits(*waiting));
  EXPECT_FALSE(reuse_->has_saves()) << "not yet";
  source.computed_rows(59, now_);
  reuse_->step_computed(running_);
  EXPECT_TRUE(waits(*waiting)) << "89 of 90";
  EXPECT_FALSE(reuse_->has_saves());
  source.computed_rows(5, now_);
  reuse_->step_computed(running_);
  EXPECT_EQ(save(), (std::vector<TokenCount>{94}));
  EXPECT_FALSE(waits(*waiting));
  EXPECT_EQ(find(*waiting).length, 90);
  EXPECT_EQ(reuse_->waits_begun(), 1u);
  reuse_->step_computed(running_);
  EXPECT_FALSE(reuse_->has_saves()) << "once is enough";
}

TEST_F(ReuseTest, WhatIsComputedAlreadyIsCopiedAtOnce) {
  running({}, 100);
  const auto waiting = sequence({});
  EXPECT_TRUE(waits(*waiting));
  EXPECT_EQ(save(), (std::vector<TokenCount>{100}));
  EXPECT_FALSE(waits(*waiting));
}

TEST_F(ReuseTest, NoRequestWaitsForLittleMoreThanThereIs) {
  running({.shared = 31}, 0);
  EXPECT_FALSE(waits(*sequence({.shared = 31}))) << "31 in common";
  leave(running({.shared = 59}, 59));
  save();
  running({}, 0);
  EXPECT_FALSE(waits(*sequence({}))) << "90 in common, 59 of them cached";
  configure(1 << 20);
  running_.clear();
  leave(running({.shared = 58}, 58));
  save();
  running({}, 0);
  EXPECT_TRUE(waits(*sequence({})));
}

TEST_F(ReuseTest, NoRequestWaitsForALesserClass) {
  for (const ServiceClass source : {kInteractive, kStandard, kBackground}) {
    for (const ServiceClass waiting : {kInteractive, kStandard, kBackground}) {
      configure(1 << 20);
      running_.clear();
      running({.service_class = source}, 10);
      EXPECT_EQ(waits(*sequence({.service_class = waiting})), source <= waiting);
    }
  }
}

TEST_F(ReuseTest, NoRequestWaitsForAnotherTenantUnlessTheyShare) {
  for (const bool shared : {false, true}) {
    configure(1 << 20, true, shared);
    running_.clear();
    running({.tenant = 1}, 10);
    EXPECT_EQ(waits(*sequence({.tenant = 2})), shared);
    EXPECT_TRUE(waits(*sequence({.tenant = 1})));
  }
}

TEST_F(ReuseTest, NoRequestWaitsForOneThatLeft) {
  const auto waiting = sequence({});
  Sequence& source = running({}, 20);
  EXPECT_TRUE(waits(*waiting));
  leave(source);
  EXPECT_FALSE(waits(*waiting));
  save();
  EXPECT_EQ(find(*waiting).length, 20);
  EXPECT_EQ(reuse_->cache_stats().pending, 0u);
}

TEST_F(ReuseTest, NoRequestWaitsForACopyThatCannotBeMade) {
  Sequence& source = running({.prompt = 200, .shared = 150}, 90);
  const auto early = sequence({});
  const auto late = sequence({.prompt = 200, .shared = 150});
  EXPECT_TRUE(waits(*early));
  EXPECT_TRUE(waits(*late));
  EXPECT_EQ(save(false).size(), 1u);
  EXPECT_FALSE(waits(*early));
  EXPECT_FALSE(waits(*late)) << "not even for what is not computed yet";
  source.computed_rows(110, now_);
  reuse_->step_computed(running_);
  EXPECT_FALSE(reuse_->has_saves());
}

TEST_F(ReuseTest, ACopyThatIsLargerThanTheCacheIsNotMadeTwice) {
  configure(500);  // 50 tokens
  leave(running({}, 60));
  EXPECT_EQ(save(), (std::vector<TokenCount>{60}));
  EXPECT_EQ(reuse_->cache_stats().refused, 1u);
  leave(running({}, 60));
  EXPECT_FALSE(reuse_->has_saves());
  running({}, 10);
  EXPECT_FALSE(waits(*sequence({}))) << "for 90 tokens";
  EXPECT_TRUE(waits(*sequence({.shared = 45})));
  running_.clear();
  leave(running({}, 45));
  EXPECT_EQ(save(), (std::vector<TokenCount>{45})) << "shorter ones may fit";
}

TEST_F(ReuseTest, NoRequestWaitsForACopyThatTakesLongerThanToCompute) {
  bytes_per_token_ = 1'000'000;  // half a millisecond a token, each way
  configure(1 << 30);
  leave(running({.prompt = 20, .shared = 20}, 20));
  save();
  running({.prompt = 400, .shared = 90}, 400);
  EXPECT_FALSE(waits(*sequence({}))) << "400 copied twice, for the sake of 70";
  EXPECT_FALSE(reuse_->has_saves());
  running({.prompt = 400, .shared = 390}, 100);
  EXPECT_TRUE(waits(*sequence({.prompt = 400, .shared = 390})));
}

TEST_F(ReuseTest, BringsBackOnlyWhatIsQuickerToCopy) {
  leave(running({}, 100));
  save();  // 1,000 bytes
  const PrefixCache::Match match = find(*sequence({}));
  ASSERT_EQ(match.length, 90);
  // 90 tokens take 90 ms to compute.
  for (int i = 0; i < 200; ++i) restore(match, milliseconds(80));
  EXPECT_EQ(found({}), 90);
  for (int i = 0; i < 200; ++i) restore(match, milliseconds(100));
  EXPECT_EQ(found({}), 0);
  EXPECT_EQ(find(*sequence({}), 2 * kRow).length, 90) << "as computing takes longer";
  EXPECT_EQ(find(*sequence({}), 0).length, 90) << "when nothing is known";
}

TEST_F(ReuseTest, OneSlowCopyIsAnAccident) {
  leave(running({}, 100));
  save();
  const PrefixCache::Match match = find(*sequence({}));
  for (int i = 0; i < 200; ++i) restore(match, milliseconds(20));
  restore(match, seconds(100));
  EXPECT_EQ(found({}), 90);
}

TEST_F(ReuseTest, ACopyOfOneTokenSaysNothingAboutLongOnes) {
  leave(running({}, 100));
  save();
  const PrefixCache::Match one = find(*sequence({.prompt = 30, .shared = 1}));
  ASSERT_EQ(one.length, 1);
  restore(one, seconds(1));
  EXPECT_EQ(found({}), 90);
}

TEST_F(ReuseTest, WhatWasSlowIsTriedAgainAfterAWhile) {
  leave(running({}, 100));
  save();
  const PrefixCache::Match match = find(*sequence({}));
  for (int i = 0; i < 200; ++i) restore(match, seconds(1));
  int without = 0;
  for (; without < 1000; ++without) {
    for (int asked = 0; asked < 100; ++asked) ASSERT_EQ(found({}), 0) << "to ask alone changes nothing";
    const std::unique_ptr<Sequence> next = sequence({});
    const Reuse::Prefix prefix = reuse_->choose(*next, kRow, true, now_);
    reuse_->started(*next, prefix, now_);
    reuse_->forget(next->id());
    if (find(*next).length > 0) break;
  }
  EXPECT_GT(without, 10);
  EXPECT_LT(without, 100);
}

TEST_F(ReuseTest, WhereKvCannotBeCutThePromptIsCopiedWhenItIsComplete) {
  configure(1 << 20, false);
  Sequence& source = running({.prompt = 60, .shared = 60}, 60);
  reuse_->checkpoint_computed(source);
  EXPECT_EQ(save(), (std::vector<TokenCount>{60}));
  reuse_->checkpoint_computed(source);
  EXPECT_FALSE(reuse_->has_saves()) << "it is there";
  EXPECT_EQ(found({}), 60);
  EXPECT_EQ(found({.prompt = 60, .shared = 60}), 0) << "all of it is one too many";
  EXPECT_EQ(found({.prompt = 60, .shared = 50}), 0);
}

TEST_F(ReuseTest, WhereKvCanBeCutAPromptThatIsCompleteIsNoOccasion) {
  reuse_->checkpoint_computed(running({}, 100));
  EXPECT_FALSE(reuse_->has_saves());
}

TEST_F(ReuseTest, WhereKvCannotBeCutOneWaitsForAWholePromptOnly) {
  configure(1 << 20, false);
  running({.prompt = 100, .shared = 90}, 10);
  EXPECT_FALSE(waits(*sequence({})));
  Sequence& source = running({.prompt = 60, .shared = 60}, 10);
  const auto waiting = sequence({});
  EXPECT_TRUE(waits(*waiting));
  source.computed_rows(50, now_);
  reuse_->checkpoint_computed(source);
  source.add_token(7, now_);
  reuse_->step_computed(running_);
  EXPECT_TRUE(reuse_->waits(*waiting, running_)) << "for the copy";
  save();
  EXPECT_FALSE(waits(*waiting));
  EXPECT_EQ(find(*waiting).length, 60);
}

TEST_F(ReuseTest, WithoutRoomNothingIsKept) {
  configure(0);
  Sequence& source = running({}, 50);
  EXPECT_FALSE(waits(*sequence({})));
  leave(source);
  EXPECT_FALSE(reuse_->has_saves());
  EXPECT_EQ(found({}), 0);
}

}  // namespace
}  // namespace chasqui
