// What a scheduler's caches tell publishers of, against what requests find: random conversations in a few cached slots
// and too little memory.
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cache/holding_log.h"
#include "sched/fake_worker.h"

namespace chasqui {
namespace {

// The publisher's side: what is held now.
struct Told {
  std::map<std::uint64_t, Holding> held;
  HoldingLog log{{}, 1, [this](HoldingChanges& changes) {
                   for (auto& [id, holding] : changes.begun) EXPECT_TRUE(held.emplace(id, std::move(holding)).second);
                   for (const std::uint64_t id : changes.ended) EXPECT_EQ(held.erase(id), 1U);
                   changes = {};
                 }};

  // Whole blocks at the beginning of these tokens.
  TokenCount blocks_of(const std::vector<Token>& tokens, std::uint64_t adapters) const {
    std::ptrdiff_t most = 0;
    for (const auto& [id, holding] : held) {
      if (holding.adapters != adapters) continue;
      most = std::max(most, std::ranges::mismatch(tokens, holding.tokens).in1 - tokens.begin());
    }
    most = std::min(most, std::ssize(tokens) - 1);  // the last token of a prompt is always computed
    return static_cast<TokenCount>(most / kHeldBlock);
  }
};

SchedulerConfig small_cache(HoldingLog& log, bool keeps_slots) {
  SchedulerConfig config = with_cache(streams(3, 64, 600), 1500 * sizeof(FakeToken));
  config.reuse.kv_block = keeps_slots ? 16 : 0;
  config.reuse.kv_token_bytes = sizeof(FakeToken);
  config.reuse.slots_ready = 1;
  config.reuse.holdings = &log;
  return config;
}

class Conversations {
 public:
  Conversations(unsigned seed, bool keeps_slots) : random_(seed), worker_(small_cache(told_.log, keeps_slots)) {}

  void ask() {
    RequestDraft draft;
    draft.prompt = prompt();
    draft.max_tokens = 1 + static_cast<std::int64_t>(below(70));
    draft.tell_cache = true;
    if (below(5) == 0)
      draft.adapters = std::make_shared<const AdapterSet>(AdapterSet{.id = 9, .uses = {{.adapter = 1}}});
    const std::uint64_t adapters = id_of(draft.adapters.get());
    const TokenCount said = told_.blocks_of(draft.prompt, adapters);
    const std::uint64_t id = ++last_;
    worker_.submit(id, std::move(draft), {});
    if (below(6) == 0) return end_early(id);
    while (!worker_.finished(id)) ASSERT_TRUE(worker_.step());
    told_.log.flush();
    ASSERT_TRUE(worker_.of(id).last.usage.cache);
    EXPECT_EQ(said, worker_.of(id).last.usage.cache->known / kHeldBlock) << "request " << id;
    found_ += said;
    if (below(10) == 0) forget();
    // Else the next request waits for a slot, and what is copied out meanwhile may take the place of what it begins
    // with.
    worker_.run_to_end();
    told_.log.flush();
  }

  void end() {
    worker_.run_to_end();
    worker_.scheduler.forget_tenant({});
    worker_.run_to_end();
    told_.log.flush();
    EXPECT_TRUE(told_.held.empty());
    EXPECT_GT(found_, 50);
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }

  // A new one of a few families, or the next turn of one that was asked before.
  std::vector<Token> prompt() {
    std::vector<Token> out;
    if (last_ > 0 && below(3) > 0) {
      const std::uint64_t before = last_ - below(std::min<std::uint64_t>(last_, 5));
      out = worker_.of(before).request->prompt;
      for (TokenCount n = 0; n < worker_.of(before).tokens; ++n) out.push_back(fake_next(out));
    }
    if (out.empty() || out.size() > 400) out = test_prompt(static_cast<TokenCount>(60 + below(200)), below(4));
    const std::vector<Token> own = test_prompt(static_cast<TokenCount>(1 + below(90)), 1000 + last_);
    out.insert(out.end(), own.begin(), own.end());
    return out;
  }

  void end_early(std::uint64_t id) {
    for (std::size_t steps = below(8); steps > 0 && !worker_.finished(id); --steps) ASSERT_TRUE(worker_.step());
    worker_.cancel(id);
    worker_.run_to_end();
    told_.log.flush();
  }

  void forget() {
    worker_.scheduler.forget_tenant({});
    told_.log.flush();
    EXPECT_TRUE(told_.held.empty()) << "nothing runs";
  }

  std::mt19937 random_;
  Told told_;
  FakeWorker worker_;
  std::uint64_t last_ = 0;
  TokenCount found_ = 0;
};

TEST(Holdings, AreWhatRequestsFind) {
  for (const bool keeps_slots : {true, false}) {
    for (unsigned seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", keeps slots " << keeps_slots);
      Conversations conversations(seed, keeps_slots);
      for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) conversations.ask();
      if (!testing::Test::HasFailure()) conversations.end();
    }
  }
}

TEST(Holdings, HaveThePromptOfARequestThatRuns) {
  Told told;
  FakeWorker worker(small_cache(told.log, true));
  const std::vector<Token> prompt = test_prompt(200, 1);
  RequestDraft draft;
  draft.prompt = prompt;
  draft.max_tokens = 100;
  worker.submit(1, std::move(draft), {});
  ASSERT_TRUE(worker.step());
  told.log.flush();
  EXPECT_TRUE(told.held.empty()) << "it is being computed";
  while (worker.of(1).tokens == 0) ASSERT_TRUE(worker.step());
  told.log.flush();
  EXPECT_EQ(told.blocks_of(prompt, 0), 3);
  // The next turn goes on in the slot.
  worker.run_to_end();
  worker.add_turn(2, 1, 64, 100);
  ASSERT_TRUE(worker.step());
  told.log.flush();
  EXPECT_EQ(told.blocks_of(prompt, 0), 3);
  EXPECT_EQ(told.held.size(), 1U);
}

}  // namespace
}  // namespace chasqui
