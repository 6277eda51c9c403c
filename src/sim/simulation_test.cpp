// Short runs of everything at once; `chasqui simulate` does long ones.
#include "sim/simulation.h"

#include <tuple>

#include <gtest/gtest.h>

#include "sim/drawn_workload.h"
#include "sim/report.h"

namespace chasqui {
namespace {

SimulationConfig config_of(std::uint64_t seed) {
  SimulationConfig config;
  config.seed = seed;
  config.scheduler.kv = {8, 8 * 256, 256, false};
  config.scheduler.rows_max = 64;
  config.scheduler.dense_slots = true;
  config.gate.queue_requests = 40;
  config.cost.noise = 0.2;
  config.cost.neighbour_factor = 5;
  config.cost.neighbour_every_s = 100;
  config.cost.neighbour_stays_s = 10;
  config.disturbances = {0.003, 0.002, 0.01};
  config.clients.unread_max = 5;
  return config;
}

WorkloadConfig workload_of(std::uint64_t seed) {
  WorkloadConfig config;
  config.seed = seed;
  config.requests = 1500;
  config.rate = 3;
  config.prompt = *Distribution::parse("80%1-40,20%40-250", "");
  config.output = *Distribution::parse("0-40", "");
  config.classes = {1, 2, 1};
  config.tenants = {{10, 1}, {1, 1}, {1, 2}};
  config.prefixes = 3;
  config.prefix_tokens = Distribution(20);
  config.prefix_share = 0.3;
  config.leaving_share = 0.2;
  config.timeout_share = 0.2;
  config.timeout_ms = *Distribution::parse("1000-30000", "");
  config.slow_share = 0.1;
  return config;
}

std::string run(const SimulationConfig& config, const WorkloadConfig& drawn) {
  DrawnWorkload workload(drawn);
  Simulation simulation(config, workload);
  EXPECT_TRUE(simulation.run()) << "seed " << config.seed << ": " << simulation.faults().lines().front();
  const Group& all = simulation.statistics().all();
  std::uint64_t sum = 0;
  for (const std::uint64_t count : all.outcomes) sum += count;
  EXPECT_EQ(sum, drawn.requests) << "one-terminal";
  EXPECT_EQ(all.requests, drawn.requests);
  const std::vector<RunReport> report = {{"p", config.seed, &simulation.statistics(), &simulation.faults()}};
  return report_text(report) + report_json(report);
}

class SimulationSeeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(SimulationSeeds, KeepEveryPromise) {
  const SimulationConfig config = config_of(GetParam());
  run(config, workload_of(GetParam()));

  SimulationConfig unified = config;
  unified.scheduler.kv = {8, 500, 256, true};
  unified.scheduler.dense_slots = false;
  unified.cost.unified = true;
  run(unified, workload_of(GetParam()));

  SimulationConfig fcfs = config;
  fcfs.scheduler.policy = &first_come_policy();
  run(fcfs, workload_of(GetParam()));

  SimulationConfig closed = config;
  closed.clients.clients = 30;
  closed.clients.think_ms = Distribution(500);
  run(closed, workload_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Simulation, SimulationSeeds, testing::Range<std::uint64_t>(1, 9));

TEST(Simulation, TheSameSeedIsTheSameReport) {
  const std::string first = run(config_of(5), workload_of(5));
  EXPECT_EQ(run(config_of(5), workload_of(5)), first);
  EXPECT_NE(run(config_of(6), workload_of(6)), first);
}

// Prefixes that many share, and a cache for some of them.
class CachedSeeds : public testing::TestWithParam<std::uint64_t> {};

std::pair<SimulationConfig, WorkloadConfig> cached(std::uint64_t seed, std::size_t tokens) {
  std::pair<SimulationConfig, WorkloadConfig> both = {config_of(seed), workload_of(seed)};
  both.first.scheduler.reuse.cache.bytes = tokens * kTokenBytes;
  both.first.disturbances.unrestored = 0.05;
  both.second.requests = 800;
  both.second.prompt = *Distribution::parse("1-60", "");
  both.second.prefix_tokens = *Distribution::parse("40-150", "");
  both.second.prefix_share = 0.8;
  return both;
}

TEST_P(CachedSeeds, KeepEveryPromise) {
  for (const std::size_t tokens : {std::size_t{300}, std::size_t{2000}, std::size_t{1'000'000}}) {
    auto [config, drawn] = cached(GetParam(), tokens);
    run(config, drawn);
    config.scheduler.reuse.cache.cut_anywhere = false;
    run(config, drawn);
    config.scheduler.reuse.cache.cut_anywhere = true;
    config.scheduler.reuse.shared_by_tenants = true;
    config.scheduler.kv = {8, 500, 256, true};
    config.scheduler.dense_slots = false;
    config.cost.unified = true;
    run(config, drawn);
  }
}

INSTANTIATE_TEST_SUITE_P(Simulation, CachedSeeds, testing::Range<std::uint64_t>(1, 5));

TEST(Simulation, APrefixCacheSavesWhatPromptsShare) {
  const auto rows = [](std::size_t tokens) {
    auto [config, drawn] = cached(7, tokens);
    config.disturbances = {};
    config.scheduler.reuse.shared_by_tenants = true;
    config.scheduler.kv = {8, 8 * 512, 512, false};
    drawn.leaving_share = drawn.timeout_share = drawn.slow_share = 0;
    drawn.classes = {0, 1, 0};
    drawn.output = *Distribution::parse("1-40", "");
    drawn.rate = 0.3;  // none is refused, nor preempted
    DrawnWorkload workload(drawn);
    Simulation simulation(config, workload);
    EXPECT_TRUE(simulation.run()) << simulation.faults().lines().front();
    const Statistics& statistics = simulation.statistics();
    EXPECT_EQ(statistics.prompt_rows + statistics.cached_tokens(), statistics.all().prompt_tokens);
    EXPECT_EQ(statistics.cached_tokens() > 0, tokens > 0);
    return std::pair(statistics.prompt_rows, statistics.shared_tokens());
  };
  const auto [all, shared] = rows(0);
  const auto [with, same] = rows(1'000'000);
  EXPECT_EQ(shared, same);
  EXPECT_LE(with, all - shared * 95 / 100) << "nearly what a perfect cache would save";
}

TEST(Simulation, TheSameSeedIsTheSameReportWithACacheToo) {
  const auto once = [](std::uint64_t seed) {
    const auto [config, drawn] = cached(seed, 2000);
    return run(config, drawn);
  };
  EXPECT_EQ(once(5), once(5));
  EXPECT_NE(once(5), once(6));
}

// Everything that the scheduler can have at once, with one worker and with three.
TEST(Simulation, SpeculationAdaptersDiskAndWorkersTogether) {
  for (const std::size_t workers : {1, 3}) {
    auto [config, drawn] = cached(4, 3000);
    config.workers = workers;
    config.scheduler.exchanges = true;
    config.scheduler.reuse.kv_block = 16;
    config.scheduler.reuse.kv_token_bytes = kTokenBytes;
    config.scheduler.reuse.disk = DiskLimits{100'000, 10'000};
    config.scheduler.speculation = {.draft_tokens_max = 4, .outputs_max = 40};
    config.cost.disk.failed = 0.02;
    drawn.repeats = 0.95;
    drawn.adapters = 2;
    drawn.adapter_share = 0.5;
    drawn.output = *Distribution::parse("20-80", "");
    DrawnWorkload workload(drawn);
    Simulation simulation(config, workload);
    ASSERT_TRUE(simulation.run()) << simulation.faults().lines().front();
    const Statistics& statistics = simulation.statistics();
    EXPECT_GT(statistics.drafted, 0u);
    EXPECT_GT(statistics.accepted, statistics.drafted / 4);
    EXPECT_GT(statistics.adapter_switches, 0u);
    EXPECT_GT(statistics.disk_reads, 0u);
  }
}

// Twice the workers do twice as much, where there is enough to do.
TEST(Simulation, WorkersShareTheRequests) {
  const auto seconds_with = [](std::size_t workers) {
    SimulationConfig config;
    config.workers = workers;
    config.scheduler.kv = {4, 4 * 512, 512, false};
    config.scheduler.rows_max = 128;
    config.scheduler.dense_slots = true;
    config.gate.queue_requests = 1000;
    WorkloadConfig drawn;
    drawn.requests = 400;
    drawn.rate = 1000;
    DrawnWorkload workload(drawn);
    Simulation simulation(config, workload);
    EXPECT_TRUE(simulation.run()) << simulation.faults().lines().front();
    return to_seconds(simulation.statistics().virtual_time);
  };
  EXPECT_NEAR(seconds_with(1) / seconds_with(2), 2, 0.1);
}

TEST(Simulation, EveryWayToEndHappens) {
  DrawnWorkload workload(workload_of(3));
  Simulation simulation(config_of(3), workload);
  ASSERT_TRUE(simulation.run());
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    EXPECT_GT(simulation.statistics().all().outcomes[i], 0u) << name(static_cast<Outcome>(i));
  }
  EXPECT_GT(simulation.statistics().shared_tokens(), 0u);
}

// Three times what the slots can do, from nothing: who is let in gets a first token in time, and they are many.
TEST(Simulation, WhoIsLetInIsServedInTimeUnderOverload) {
  SimulationConfig config;
  config.scheduler.kv = {16, 16 * 256, 256, false};
  config.scheduler.rows_max = 256;
  config.cost.decode = {2000, 300, 0.3};
  config.cost.prefill = {2000, 250, 0.1};
  config.cost.noise = 0.2;
  config.gate.queue_wait = {seconds(1), seconds(5), seconds(30)};
  WorkloadConfig drawn;
  drawn.requests = 3000;
  drawn.rate = 120;
  drawn.prompt = *Distribution::parse("20-40", "");
  drawn.output = *Distribution::parse("16-48", "");
  Duration busy{};
  Duration time{};
  for (drawn.seed = 1; drawn.seed <= 4; ++drawn.seed) {
    config.seed = drawn.seed;
    DrawnWorkload workload(drawn);
    Simulation simulation(config, workload);
    ASSERT_TRUE(simulation.run());
    const Statistics& statistics = simulation.statistics();
    EXPECT_GT(statistics.all().refusals, 1000u) << "too little load for this test";
    EXPECT_LE(statistics.all().kept.at(0.99), 5000.0);
    busy += statistics.steps().busy;
    time += statistics.virtual_time;
  }
  EXPECT_GE(to_seconds(busy) / to_seconds(time), 0.94);
}

// One request alone takes what its steps take.
TEST(Simulation, OneRequestTakesItsSteps) {
  SimulationConfig config;
  config.scheduler.kv = {4, 4 * 256, 256, false};
  config.scheduler.rows_max = 64;
  config.cost.decode = {1000, 100, 0};
  config.cost.prefill = {2000, 10, 0};
  WorkloadConfig drawn;
  drawn.requests = 1;
  drawn.prompt = Distribution(50);
  drawn.output = Distribution(11);
  DrawnWorkload workload(drawn);
  Simulation simulation(config, workload);
  ASSERT_TRUE(simulation.run());
  const Statistics& statistics = simulation.statistics();
  const double prefill_ms = static_cast<double>(statistics.steps().prefill) * 2 + 0.5;
  EXPECT_DOUBLE_EQ(statistics.all().ttft.at(1), prefill_ms);
  EXPECT_DOUBLE_EQ(statistics.all().itl.at(0.5), 1.1);
  EXPECT_DOUBLE_EQ(statistics.all().e2e.at(1), prefill_ms + 10 * 1.1);
  EXPECT_EQ(statistics.all().tokens, 11u);
}

}  // namespace
}  // namespace chasqui
