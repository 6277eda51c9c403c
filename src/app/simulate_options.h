// The command line of `chasqui simulate`: what it was asked to do, and the options that say so. Start-up thread only.
#pragma once

#include <string>
#include <vector>

#include "sim/ablation.h"
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
  std::int64_t disk_mib = 0;        // of files below the cache; 0: none
  double disk_us = 20;              // to read a cell from one, or to write it
  std::string trace;                // read the requests from this file
  std::string write_trace;          // … or write what the seed draws to this one
  std::vector<std::string> policies = {"fair"};
  std::vector<CostPreset> presets;    // empty: costs are what the options say
  std::uint64_t trials = 0;           // 0: one load, as the options say; else so many drawn ones for each preset
  std::vector<AblationRule> ablated;  // empty: … else fixed loads without each of these
  bool json = false;
};

// Adds the subcommand and its options; they are read into `config`, which must live until the line is parsed.
CLI::App* add_simulate(CLI::App& app, SimulateConfig& config);

}  // namespace chasqui
