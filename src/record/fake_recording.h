// A recording of a simulation, in memory. For tests.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "record/scheduler_recorder.h"
#include "sim/drawn_workload.h"
#include "sim/simulation.h"

namespace chasqui {

// Takes all there is, up to `most` pieces.
class FakeSink final : public RecordSink {
 public:
  explicit FakeSink(std::size_t most = SIZE_MAX) : most_(most) {}

  bool take(RecordPiece&& piece) override {
    if (pieces == most_) return false;
    ++pieces;
    append_piece(piece, file);
    return true;
  }
  std::string room() override { return {}; }

  std::string file = std::string(kRecordMagic);
  std::size_t pieces = 0;

 private:
  std::size_t most_;
};

struct FakeLoad {
  SimulationConfig config;
  WorkloadConfig workload;
};

// Eight slots, prefixes that many share, clients that leave, steps that fail.
inline FakeLoad fake_load(std::uint64_t seed) {
  FakeLoad load;
  SimulationConfig& config = load.config;
  config.seed = seed;
  config.scheduler.kv = {8, 8 * 256, 256, false};
  config.scheduler.rows_max = 64;
  config.scheduler.dense_slots = true;
  config.gate.queue_requests = 300;
  config.cost.decode = {2000, 300, 0.3};
  config.cost.prefill = {2000, 250, 0.1};
  config.cost.noise = 0.2;
  config.disturbances = {0.003, 0.002, 0.01};
  config.scheduler.reuse.cache.bytes = 2000 * kTokenBytes;
  WorkloadConfig& drawn = load.workload;
  drawn.seed = seed;
  drawn.requests = 600;
  drawn.rate = 60;
  drawn.prompt = *Distribution::parse("80%1-40,20%40-150", "");
  drawn.output = *Distribution::parse("0-40", "");
  drawn.classes = {1, 2, 1};
  drawn.tenants = {{10, 1}, {1, 1}, {1, 2}};
  drawn.prefixes = 3;
  drawn.prefix_tokens = *Distribution::parse("20-80", "");
  drawn.prefix_share = 0.6;
  drawn.leaving_share = 0.2;
  drawn.timeout_share = 0.2;
  drawn.timeout_ms = *Distribution::parse("1000-30000", "");
  return load;
}

// The whole file.
inline std::string recorded(FakeLoad load, FakeSink sink = FakeSink()) {
  RecordedHead head;
  head.program = "chasqui test";
  head.model = "fake";
  head.config = load.config.scheduler;
  for (const auto& [policy, rules] : slot_policies()) {
    if (rules == head.config.policy) head.policy = policy;
  }
  {
    SchedulerRecorder recorder(sink, 0, head, StandIns::new_secret());
    load.config.scheduler.tap = &recorder;
    DrawnWorkload workload(load.workload);
    Simulation simulation(load.config, workload);
    EXPECT_TRUE(simulation.run()) << simulation.faults().lines().front();
  }
  return std::move(sink.file);
}

}  // namespace chasqui
