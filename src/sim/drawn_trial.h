// A server and a load drawn from a seed, for the costs of one preset: slots, layout, batch, targets, prefix cache,
// disk, speculation, adapters, workers, crowds and steady clients, prompts of 16 to 16,000 tokens, all classes, tenants
// of different sizes, clients that leave, steps that fail. Admission refuses nothing, so all of it is the scheduler's
// to keep. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cost_preset.h"
#include "sim/drawn_workload.h"
#include "sim/simulation.h"

namespace chasqui {

struct DrawnTrial {
  SimulationConfig run;
  WorkloadConfig workload;
};

// `requests`: how many; what they are does not depend on it.
DrawnTrial draw_trial(std::uint64_t seed, const CostPreset& preset, std::uint64_t requests);

// What came of one preset's trials.
struct TrialsReport {
  std::string preset;
  std::uint64_t trials = 0;
  std::uint64_t requests = 0;
  std::uint64_t steps = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t cut_steps = 0;
  std::uint64_t draft_tokens = 0;
  std::uint64_t adapter_switches = 0;
  std::uint64_t disk_reads = 0;
  std::int32_t most_passed = 0;  // younger ones of its kind that got a slot before a request
  double virtual_s = 0;
  std::uint64_t broken = 0;         // trials that broke a promise
  std::vector<std::string> faults;  // the first of each of them, with its seed; the first ones
};

// Runs `trials` of them, with the seeds from `seed` on.
TrialsReport run_trials(std::uint64_t seed, std::uint64_t trials, const CostPreset& preset, std::uint64_t requests);

// Both forms of the report of `chasqui simulate --check`.
std::string trials_text(const std::vector<TrialsReport>& reports);
std::string trials_json(const std::vector<TrialsReport>& reports);

}  // namespace chasqui
