// Agent loops: each call sends all of what was said before, and more.
#include "sim/conversations.h"

#include <sstream>

#include <gtest/gtest.h>

#include "sim/cost_preset.h"
#include "sim/drawn_workload.h"
#include "sim/simulation.h"
#include "sim/trace.h"

namespace chasqui {
namespace {

constexpr TokenCount kContext = 24'000;

SimulationConfig server_of(const std::string& preset, std::int32_t slots, std::int32_t sessions) {
  const CostPreset costs = find_cost_presets(preset, "preset")->front();
  SimulationConfig config;
  config.cost = costs.cost;
  config.scheduler.kv = {slots, slots * kContext, kContext, false};
  config.scheduler.rows_max = 512;
  config.scheduler.dense_slots = true;
  ReuseConfig& reuse = config.scheduler.reuse;
  reuse.cache.bytes = static_cast<std::size_t>(sessions) * kContext * kTokenBytes;
  reuse.kv_block = 256;
  reuse.kv_token_bytes = kTokenBytes;
  reuse.slots_ready = slots_kept_ready(slots);
  config.gate.queue_tokens = 0;
  config.clients.clients = sessions;
  config.clients.turns = 40;
  config.clients.think_ms = *Distribution::parse("1000-20000", "");
  config.clients.tool_ms = *Distribution::parse("50-3000", "");
  return config;
}

// Forty calls of each session: a system prompt that all have, then results of tools, and now and then another try.
WorkloadConfig agents(std::uint64_t seed, std::int32_t sessions) {
  WorkloadConfig load;
  load.seed = seed;
  load.requests = static_cast<std::uint64_t>(sessions) * 40;
  load.prompt = *Distribution::parse("70%40-300,30%300-800", "");
  load.output = *Distribution::parse("20-120", "");
  load.prefixes = 1;
  load.prefix_tokens = Distribution(2000);
  load.prefix_share = 1;
  load.call_share = 0.8;
  load.branch_share = 0.05;
  return load;
}

Statistics::Returning returning(SimulationConfig config, std::uint64_t seed) {
  config.seed = seed;
  DrawnWorkload workload(agents(seed, config.clients.clients));
  Simulation simulation(config, workload);
  EXPECT_TRUE(simulation.run()) << "seed " << seed << ": " << simulation.faults().lines().front();
  const Statistics::Returning& result = simulation.statistics().returning();
  EXPECT_GT(result.turns, 30u * static_cast<unsigned>(config.clients.clients));
  return result;
}

// `slower`: how much later the 95th percentile of the first token may come than where copies cost nothing. On a GPU to
// bring back ten thousand tokens takes several times as long as to read what is new.
struct Loops {
  const char* preset;
  double slower;
};
class AgentLoops : public testing::TestWithParam<Loops> {};

TEST_P(AgentLoops, FindWhatWasSaidThoughTwiceAsManyGoOnAsThereAreSlots) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const SimulationConfig config = server_of(GetParam().preset, 8, 16);
    SimulationConfig free_copies = config;
    free_copies.cost.copy_us = 0;
    const Statistics::Returning with = returning(config, seed);
    const Statistics::Returning best = returning(free_copies, seed);
    EXPECT_GE(with.found, 0.98 * static_cast<double>(with.turns)) << "seed " << seed;
    EXPECT_LE(with.ttft.at(0.95), GetParam().slower * best.ttft.at(0.95)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, AgentLoops,
                         testing::Values(Loops{"0.5b-laptop", 1.2}, Loops{"8b-desktop", 1.2}, Loops{"8b-gpu", 6.5}));

TEST(Conversations, ATurnSendsWhatWasSaidBeforeIt) {
  std::istringstream in(
      "{\"at_ms\":0,\"prompt\":100,\"output\":7,\"prefix\":\"p\",\"prefix_tokens\":60,\"conversation\":\"a\",\"calls\":"
      "true}\n"
      "{\"at_ms\":0,\"prompt\":20,\"output\":5,\"conversation\":\"a\",\"think_ms\":500}\n"
      "{\"at_ms\":0,\"prompt\":30,\"output\":4,\"conversation\":\"a\",\"back\":1}\n"
      "{\"at_ms\":0,\"prompt\":10,\"output\":3,\"conversation\":\"b\"}\n");
  Result<TraceWorkload> trace = TraceWorkload::read(in, "t.jsonl");
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  SimulationConfig config = server_of("0.5b-laptop", 2, 2);
  config.clients = {};
  Simulation simulation(config, *trace);
  ASSERT_TRUE(simulation.run()) << simulation.faults().lines().front();
  const Statistics& statistics = simulation.statistics();
  // 100; then 107 + 20; then without that turn 107 + 30. And 10 of the other one.
  EXPECT_EQ(statistics.all().prompt_tokens, 100u + 127 + 137 + 10);
  EXPECT_EQ(statistics.returning().turns, 2u);
  EXPECT_EQ(statistics.returning().said_tokens, 107u + 107);
  EXPECT_EQ(statistics.returning().found, 2u);
  EXPECT_GE(statistics.virtual_time, milliseconds(500));
}

TEST(Conversations, OneThatNoLongerFitsBeginsAnew) {
  Conversations conversations(100, 0);
  PlannedRequest turn;
  turn.conversation = 1;
  turn.prompt = 40;
  turn.output = 10;
  SimRequest life;
  for (const TokenCount history : {0, 0, 0}) {
    PlannedRequest plan = turn;
    ASSERT_TRUE(conversations.begin(plan));
    EXPECT_EQ(plan.history, history) << "it was never said";
    EXPECT_EQ(plan.prompt, 40);
    life.plan = plan;
    EXPECT_FALSE(conversations.ended(life));
  }
  turn.prompt = 95;
  ASSERT_TRUE(conversations.begin(turn));
  EXPECT_EQ(turn.history, 0);
  PlannedRequest early;
  early.conversation = 1;
  EXPECT_FALSE(conversations.begin(early)) << "the answer before it has not ended";
  life.plan = turn;
  EXPECT_TRUE(conversations.ended(life));
  EXPECT_EQ(conversations.next(1).conversation, 1u);
}

}  // namespace
}  // namespace chasqui
