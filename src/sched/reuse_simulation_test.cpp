// Random lives of requests that begin alike, with a cache of any size: cancels, deadlines, failing steps, copies and
// restores that fail, preemption, scarce cells, both layouts, KV that can be cut or not. FakeWorker checks every step
// and compares every answer with what the request says alone; the same seed is the same run. To run one more seed:
// CHASQUI_SIM_SEED=17 test_sched --gtest_filter='ReuseSimulation.*Environ*'
#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "sched/fake_life.h"
#include "sched/fake_worker.h"

namespace chasqui {
namespace {

constexpr TokenCount kReuseContext = 300;
constexpr std::size_t kReuseWaiting = 24;

struct Totals {
  std::uint64_t hash = 0;
  std::uint64_t prompt_rows = 0, cached = 0;
  std::uint64_t saves = 0, restores = 0, refused_restores = 0;
  std::uint64_t reuses = 0, copies = 0, pieces = 0, copied_out = 0, dropped = 0;
  std::uint64_t waits = 0, evictions = 0, refused = 0, preemptions = 0;
  std::uint64_t shifts = 0, moved_texts = 0;
  std::uint64_t ends[5] = {};

  void add(const Totals& other) {
    prompt_rows += other.prompt_rows;
    cached += other.cached;
    saves += other.saves;
    restores += other.restores;
    refused_restores += other.refused_restores;
    reuses += other.reuses;
    copies += other.copies;
    pieces += other.pieces;
    copied_out += other.copied_out;
    dropped += other.dropped;
    waits += other.waits;
    evictions += other.evictions;
    refused += other.refused;
    preemptions += other.preemptions;
    shifts += other.shifts;
    moved_texts += other.moved_texts;
    for (std::size_t i = 0; i < 5; ++i) ends[i] += other.ends[i];
  }
};

struct Wish {
  std::uint64_t seed = 1;
  bool unified = false;
  bool cut_anywhere = true;
  TokenCount kv_block = 0;
  bool shifts = false;    // the contexts of some are shifted
  bool adapters = false;  // some have an adapter
  bool calm = false;      // no client leaves, nothing fails, nothing is preempted
  bool no_cache = false;  // … and all is computed
};

SchedulerConfig draw_reuse_config(Dice& dice, const Wish& wish) {
  SchedulerConfig config = draw_config(dice, kReuseContext, wish.unified);
  config.reuse.cache.cut_anywhere = wish.cut_anywhere;
  config.reuse.kv_block = wish.kv_block;
  config.reuse.keeps_slots = !wish.unified;
  if (wish.kv_block > 0) {
    config.reuse.kv_token_bytes = sizeof(FakeToken);
    config.reuse.slots_ready = dice.below(3);
    config.exchanges = dice.permille(700);
  }
  // From room for one short sequence to room for everything.
  const std::size_t bytes[] = {600, 2000, 6000, 30'000, 1 << 20};
  config.reuse.cache.bytes = bytes[dice.below(5)];
  config.reuse.shared_by_tenants = dice.permille(300);
  if (wish.calm) config.reuse.cache.bytes = 1 << 20;
  if (wish.no_cache) config.reuse.cache.bytes = 0;
  return config;
}

class ReuseSimulation {
 public:
  explicit ReuseSimulation(const Wish& wish)
      : wish_(wish), dice_(wish.seed), config_(draw_reuse_config(dice_, wish)), worker_(config_) {
    worker_.row_cost = microseconds(dice_.between(100, 2000));
    worker_.save_cost = microseconds(dice_.between(1, 400));
    if (wish.kv_block > 0) {
      worker_.copy_cost = microseconds(dice_.between(1, 400));
      worker_.copies_take_time = dice_.permille(500);
    }
    worker_.restore_cost = !wish.calm && dice_.permille(200) ? milliseconds(dice_.between(0, 200)) : Duration::zero();
  }

  Totals run(std::uint64_t requests) {
    while (born_ < requests && healthy()) {
      arrive(requests);
      if (!wish_.calm) disturb();
      step();
    }
    worker_.model.saves_to_fail = worker_.model.restores_to_fail = 0;
    if (healthy()) worker_.run_to_end();
    if (healthy()) expect_nothing_left();
    return totals();
  }

 private:
  static bool healthy() { return !testing::Test::HasFailure(); }

  void arrive(std::uint64_t requests) {
    if (dice_.permille(10)) busy_ = !busy_;
    if (!dice_.permille(busy_ ? 300 : 40)) return;
    for (int n = dice_.between(1, 5); n > 0 && born_ < requests; --n) {
      if (wish_.calm || worker_.scheduler.waiting() < kReuseWaiting) add();
    }
  }

  void add() {
    const std::uint64_t id = ++born_;
    // Another turn of an earlier conversation, where there is room for one.
    if (id > 1 && !wish_.calm && dice_.permille(250)) {
      const auto before = static_cast<std::uint64_t>(dice_.between(1, static_cast<std::int32_t>(id) - 1));
      const FakeWorker::Outcome& earlier = worker_.of(before);
      const auto length = static_cast<TokenCount>(earlier.request->prompt.size()) + earlier.tokens + 12;
      if (earlier.finished > 0 && length < kReuseContext - 20) {
        worker_.add_turn(id, before, dice_.between(1, 12), dice_.between(0, 20));
        return;
      }
    }
    if (wish_.shifts && id > 1 && dice_.permille(200) && add_moved(id)) return;
    FakeWorker::Ask ask;
    ask.shared = dice_.permille(800) ? dice_.between(20, 120) : 0;
    ask.family = static_cast<std::uint64_t>(dice_.below(4));
    const TokenCount own = dice_.permille(250) ? 0 : dice_.between(1, dice_.permille(400) ? 140 : 30);
    ask.prompt = std::max(ask.shared + own, 1);
    ask.max_tokens = dice_.permille(100) ? 0 : dice_.between(1, 20);
    ask.service_class = static_cast<ServiceClass>(wish_.calm ? 1 : dice_.below(3));
    ask.tenant = wish_.calm ? 0 : static_cast<std::uint32_t>(dice_.below(2));
    ask.use_cache = wish_.calm || dice_.permille(900);
    if (!wish_.calm && dice_.permille(100)) ask.timeout_ms = dice_.between(1, 300);
    if (dice_.permille(300)) ask.script.end_after = dice_.between(1, 20);
    ask.script.forces = id % 3 == 0;
    worker_.shifts = wish_.shifts && dice_.permille(400);
    if (worker_.shifts) {
      ask.max_tokens = dice_.between(50, 400);
      ask.keep = dice_.between(-1, 60);
      ask.discard = dice_.permille(500) ? dice_.between(1, 80) : 0;
    }
    if (wish_.adapters && dice_.permille(400)) ask.adapters = adapters_;
    worker_.checkpoint_every = !wish_.cut_anywhere && dice_.permille(700) ? dice_.between(20, 100) : 0;
    if (ask.shared > 0 && dice_.permille(700)) ask.boundaries = {ask.shared};
    worker_.add(id, ask);
  }

  // An earlier prompt without its beginning.
  bool add_moved(std::uint64_t id) {
    const auto before = static_cast<std::uint64_t>(dice_.between(1, static_cast<std::int32_t>(id) - 1));
    const std::vector<Token>& prompt = worker_.of(before).request->prompt;
    if (prompt.size() < 60) return false;
    RequestDraft draft;
    draft.prompt.assign(prompt.begin() + dice_.between(1, 30), prompt.end());
    draft.max_tokens = dice_.between(1, 20);
    draft.chunk = dice_.between(1, 20);
    draft.adapters = worker_.of(before).request->adapters;
    worker_.submit(id, std::move(draft), {});
    return true;
  }

  void disturb() {
    if (dice_.permille(5)) {
      Tenant tenant;
      tenant.id = static_cast<std::uint32_t>(dice_.below(2));
      worker_.scheduler.forget_tenant(tenant);
    }
    if (dice_.permille(40) && born_ > 0) {
      worker_.cancel(born_ - static_cast<std::uint64_t>(dice_.below(std::min<int>(8, static_cast<int>(born_)))));
    }
    worker_.model.saves_to_fail = dice_.permille(20) ? 1 : 0;
    worker_.model.restores_to_fail = dice_.permille(50) ? dice_.between(1, 2) : 0;
  }

  void step() {
    const bool steady = wish_.calm || dice_.permille(980);
    const DecodeStatus status = steady                ? DecodeStatus::ok
                                : dice_.permille(400) ? DecodeStatus::failed
                                                      : DecodeStatus::aborted;
    if (!worker_.step(status)) worker_.clock.advance(milliseconds(1));
    const PrefixCache::Stats stats = worker_.scheduler.reuse().cache_stats();
    EXPECT_LE(stats.bytes, config_.reuse.cache.bytes) << "bounded";
  }

  void expect_nothing_left() {
    EXPECT_TRUE(worker_.scheduler.idle());
    EXPECT_EQ(worker_.scheduler.ledger().slots_used(), 0);
    EXPECT_EQ(worker_.scheduler.ledger().cells_reserved(), 0);
    EXPECT_EQ(worker_.scheduler.reuse().cache_stats().pending, 0u);
    for (const auto& [id, outcome] : worker_.outcomes) {
      EXPECT_EQ(outcome.finished, 1) << "request " << id.value;
      EXPECT_LE(outcome.last.usage.cached, outcome.last.usage.prompt);
    }
  }

  Totals totals() {
    Totals sum;
    const PrefixCache::Stats stats = worker_.scheduler.reuse().cache_stats();
    sum.prompt_rows = worker_.model.prompt_rows();
    sum.saves = worker_.model.saves();
    sum.restores = worker_.model.restores();
    sum.refused_restores = worker_.model.refused_restores();
    sum.reuses = worker_.model.reuses();
    sum.copies = worker_.model.copies();
    sum.pieces = worker_.model.pieces();
    sum.shifts = worker_.model.shifts();
    sum.moved_texts = worker_.model.moved_texts();
    const CachedSlots::Stats& slots = worker_.scheduler.reuse().slots().stats;
    sum.copied_out = slots.copied_out;
    sum.dropped = slots.dropped;
    sum.waits = worker_.scheduler.reuse().waits_begun();
    sum.evictions = stats.evictions;
    sum.refused = stats.refused;
    sum.preemptions = worker_.scheduler.preemptions();
    const std::string end = std::to_string(worker_.clock.now().time_since_epoch().count());
    for (const char c : end) sum.hash = fake_hash(sum.hash, c);
    for (const auto& [id, outcome] : worker_.outcomes) {
      sum.cached += static_cast<std::uint64_t>(outcome.last.usage.cached);
      ++sum.ends[static_cast<std::size_t>(outcome.last.reason)];
      sum.hash = fake_hash(sum.hash, outcome.last.usage.cached);
      for (const char c : outcome.text) sum.hash = fake_hash(sum.hash, c);
    }
    for (const std::uint64_t id : worker_.ending) sum.hash = fake_hash(sum.hash, static_cast<Token>(id));
    return sum;
  }

  const Wish wish_;
  Dice dice_;
  const SchedulerConfig config_;
  FakeWorker worker_;
  const AdapterSetPtr adapters_ = make_adapter_set(std::vector<float>{1}, std::vector<std::uint64_t>{11});
  std::uint64_t born_ = 0;
  bool busy_ = true;
};

Totals simulate_reuse(const Wish& wish, std::uint64_t requests = 500) {
  SCOPED_TRACE("CHASQUI_SIM_SEED=" + std::to_string(wish.seed) + (wish.unified ? ", one pool" : ", streams") +
               (wish.cut_anywhere ? "" : ", KV that cannot be cut"));
  return ReuseSimulation(wish).run(requests);
}

class ReuseSimulationSeeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ReuseSimulationSeeds, KeepEveryPromiseAtEveryStep) {
  for (const bool unified : {false, true}) {
    for (const bool cut_anywhere : {true, false}) {
      simulate_reuse({.seed = GetParam(), .unified = unified, .cut_anywhere = cut_anywhere});
    }
    simulate_reuse({.seed = GetParam(), .unified = unified, .kv_block = 8});
    simulate_reuse({.seed = GetParam(), .unified = unified, .kv_block = 8, .shifts = true});
    simulate_reuse({.seed = GetParam(), .unified = unified, .kv_block = 8, .shifts = true, .adapters = true});
  }
}

TEST_P(ReuseSimulationSeeds, ComputeLessOfThePromptsThanWithoutACache) {
  for (const bool cut_anywhere : {true, false}) {
    Wish wish{.seed = GetParam(), .cut_anywhere = cut_anywhere, .calm = true};
    const Totals with = simulate_reuse(wish, 200);
    wish.no_cache = true;
    const Totals without = simulate_reuse(wish, 200);
    EXPECT_EQ(with.prompt_rows + with.cached, without.prompt_rows) << "each token is computed, or was cached";
    EXPECT_EQ(without.cached + without.saves, 0u);
    if (!cut_anywhere) continue;
    EXPECT_LT(2 * with.prompt_rows, without.prompt_rows);
  }
}

INSTANTIATE_TEST_SUITE_P(ReuseSimulation, ReuseSimulationSeeds, testing::Range<std::uint64_t>(1, 11));

TEST(ReuseSimulation, MeetsWhatItIsMeantToMeet) {
  Totals streams, pool, uncut, pieces, shifted;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    streams.add(simulate_reuse({.seed = seed}));
    pool.add(simulate_reuse({.seed = seed, .unified = true}));
    uncut.add(simulate_reuse({.seed = seed, .cut_anywhere = false}));
    pieces.add(simulate_reuse({.seed = seed, .kv_block = 8}));
    shifted.add(simulate_reuse({.seed = seed, .kv_block = 8, .shifts = true}));
    shifted.add(simulate_reuse({.seed = seed, .unified = true, .kv_block = 8, .shifts = true}));
  }
  for (const Totals* sum : {&streams, &pool, &uncut, &pieces}) {
    for (std::size_t i = 0; i < 5; ++i) EXPECT_GT(sum->ends[i], 5u) << name(static_cast<FinishReason>(i));
    EXPECT_GT(sum->cached, 1000u);
    EXPECT_GT(sum->waits, 5u);
    EXPECT_GT(sum->evictions, 10u);
    EXPECT_GT(sum->refused, 0u);
    EXPECT_GT(sum->preemptions, 10u);
    EXPECT_GT(sum->refused_restores, 5u);
  }
  EXPECT_GT(pieces.reuses, 100u);
  EXPECT_GT(pieces.copies, 5u);
  EXPECT_GT(pieces.pieces, pieces.copies + pieces.restores + 20) << "several for one prefix";
  EXPECT_GT(pieces.copied_out, 20u);
  EXPECT_GT(pieces.dropped, 20u);
  EXPECT_GT(shifted.shifts, 50u);
  EXPECT_GT(shifted.moved_texts, 20u);
}

TEST(ReuseSimulation, TheSameSeedIsTheSameRun) {
  EXPECT_EQ(simulate_reuse({.seed = 42}).hash, simulate_reuse({.seed = 42}).hash);
  EXPECT_NE(simulate_reuse({.seed = 42}).hash, simulate_reuse({.seed = 43}).hash);
}

TEST(ReuseSimulation, TheSeedOfTheEnvironment) {
  const char* seed = std::getenv("CHASQUI_SIM_SEED");
  if (seed == nullptr) GTEST_SKIP() << "set CHASQUI_SIM_SEED to run one more seed, ten times as long";
  for (const bool unified : {false, true}) {
    simulate_reuse({.seed = std::strtoull(seed, nullptr, 10), .unified = unified, .kv_block = 8}, 5000);
    for (const bool cut_anywhere : {true, false}) {
      simulate_reuse({.seed = std::strtoull(seed, nullptr, 10), .unified = unified, .cut_anywhere = cut_anywhere},
                     5000);
    }
  }
}

}  // namespace
}  // namespace chasqui
