// `chasqui simulate`: the scheduler on virtual time, from the command line. Start-up thread only.
#pragma once

#include <string>
#include <vector>

#include "sim/cost_preset.h"
#include "sim/drawn_workload.h"
#include "sim/simulation.h"

namespace CLI {
class App;
}

namespace chasqui {

// What `chasqui simulate` was asked to do. A plain value.
struct SimulateConfig {
  SimulationConfig run;
  WorkloadConfig workload;
  std::int32_t context = 4096;      // cells of one slot
  std::int64_t cache_mib = 0;       // of snapshots; 0: none are kept
  std::int64_t cell_bytes = 12288;  // of a cell in a snapshot
  std::string trace;                // read the requests from this file
  std::string write_trace;          // … or write what the seed draws to this one
  std::vector<Policy> policies = {Policy::chasqui};
  std::vector<CostPreset> presets;  // empty: costs are what the options say
  std::uint64_t trials = 0;         // 0: one load, as the options say; else so many drawn ones for each preset
  bool json = false;
};

// Adds the subcommand and its options; they are read into `config`, which must live until the line is parsed.
CLI::App* add_simulate(CLI::App& app, SimulateConfig& config);

// Returns the exit code: 0; 1 when a promise was broken; 2 when the trace cannot be read or written.
int simulate(const SimulateConfig& config);

}  // namespace chasqui
