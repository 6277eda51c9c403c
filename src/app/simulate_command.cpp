#include "app/simulate_command.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>

#include "app/simulate_options.h"
#include "base/clock.h"
#include "sim/ablation.h"
#include "sim/drawn_trial.h"
#include "sim/report.h"
#include "sim/trace.h"

namespace chasqui {
namespace {

// A workload that can be read once, or the exit code.
std::unique_ptr<Workload> open_workload(const SimulateConfig& config) {
  if (config.trace.empty()) return std::make_unique<DrawnWorkload>(config.workload);
  std::ifstream file(config.trace);
  if (!file) {
    std::fprintf(stderr, "--trace: cannot read %s\n", config.trace.c_str());
    return nullptr;
  }
  Result<TraceWorkload> trace = TraceWorkload::read(file, config.trace);
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return nullptr;
  }
  return std::make_unique<TraceWorkload>(std::move(*trace));
}

int write_trace(const SimulateConfig& config) {
  DrawnWorkload workload(config.workload);
  std::ofstream file(config.write_trace);
  std::string line;
  for (PlannedRequest request; file && workload.next(request);) {
    line.clear();
    append_trace_line(line, request, workload);
    file << line;
  }
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "--write-trace: cannot write %s\n", config.write_trace.c_str());
  return 2;
}

// Of snapshots, in tokens: between those of small and of large models.
constexpr TokenCount kBlock = 32;

SimulationConfig run_config(const SimulateConfig& config, const std::string& policy) {
  SimulationConfig run = config.run;
  run.seed = config.workload.seed;
  KvLedger::Layout& kv = run.scheduler.kv;
  kv.cells_per_slot = config.context;
  if (kv.cells == 0 || !kv.unified) kv.cells = kv.slots * config.context;
  kv.cells = std::max(kv.cells, config.context);
  run.scheduler.dense_slots = !kv.unified;
  run.scheduler.policy = slot_policies().at(policy);
  // Simulated snapshots are smaller, and so is the room for them.
  const double cells = static_cast<double>(config.cache_mib) * (1 << 20) / static_cast<double>(config.cell_bytes);
  run.scheduler.reuse.cache.bytes = static_cast<std::size_t>(cells) * kTokenBytes;
  ReuseConfig& reuse = run.scheduler.reuse;
  reuse.kv_block = reuse.cache.cut_anywhere ? kBlock : 0;
  reuse.kv_token_bytes = kTokenBytes;
  reuse.keeps_slots = !kv.unified;
  reuse.slots_ready = slots_kept_ready(kv.slots);
  run.scheduler.exchanges = reuse.cache.cut_anywhere;
  if (config.disk_mib > 0 && reuse.cache.bytes > 0) {
    const double kept = static_cast<double>(config.disk_mib) * (1 << 20) / static_cast<double>(config.cell_bytes);
    reuse.disk = DiskLimits{static_cast<std::uint64_t>(kept) * kTokenBytes, reuse.cache.bytes / 4};
  }
  run.cost.disk.byte_us = config.disk_us / static_cast<double>(kTokenBytes);
  run.scheduler.speculation.outputs_max =
      std::min(run.scheduler.rows_max, (1 + run.scheduler.speculation.draft_tokens_max) * kv.slots);
  run.cost.unified = kv.unified;
  return run;
}

// Requests of one drawn load: enough for prompts of all lengths.
constexpr std::uint64_t kTrialRequests = 100;

// Where --preset names none: a small model and a large one, on slow machines and fast ones.
constexpr std::string_view kAblationPresets = "0.5b-laptop,8b-desktop,8b-gpu,70b-server";

int ablate_rules(const SimulateConfig& config) {
  AblationConfig ablation;
  ablation.seed = config.workload.seed;
  const std::vector<CostPreset> presets =
      config.presets.empty() ? *find_cost_presets(kAblationPresets, "--preset") : config.presets;
  const std::vector<AblationRun> runs = ablate(ablation, config.ablated, presets);
  const std::string report = config.json ? ablation_json(runs) : ablation_text(runs);
  std::fwrite(report.data(), 1, report.size(), stdout);
  return 0;
}

int check_trials(const SimulateConfig& config) {
  std::vector<TrialsReport> reports;
  bool kept = true;
  for (const CostPreset& preset : config.presets.empty() ? cost_presets() : config.presets) {
    std::fprintf(stderr, "checking %s, seeds from %llu on\n", preset.name.c_str(),
                 static_cast<unsigned long long>(config.workload.seed));
    reports.push_back(run_trials(config.workload.seed, config.trials, preset, kTrialRequests));
    kept = kept && reports.back().broken == 0;
  }
  const std::string report = config.json ? trials_json(reports) : trials_text(reports);
  std::fwrite(report.data(), 1, report.size(), stdout);
  return kept ? 0 : 1;
}

}  // namespace

int simulate(const SimulateConfig& config) {
  if (!config.write_trace.empty()) return write_trace(config);
  if (config.trials > 0) return check_trials(config);
  if (!config.ablated.empty()) return ablate_rules(config);
  if (config.presets.size() > 1) {
    std::fprintf(stderr, "--preset: one for a run; several, or all, for --check and --ablate\n");
    return 2;
  }
  std::deque<std::unique_ptr<Workload>> workloads;
  std::deque<Simulation> simulations;
  std::vector<RunReport> reports;
  bool kept = true;
  for (const std::string& policy : config.policies) {
    workloads.push_back(open_workload(config));
    if (workloads.back() == nullptr) return 2;
    Simulation& simulation = simulations.emplace_back(run_config(config, policy), *workloads.back());
    // A broken CHECK ends the process: the reader should know what to repeat.
    std::fprintf(stderr, "simulating, policy %s, seed %llu\n", policy.c_str(),
                 static_cast<unsigned long long>(config.workload.seed));
    const RealClock clock;
    const TimePoint start = clock.now();
    kept = simulation.run() && kept;
    const double wall = to_seconds(clock.now() - start);
    const double simulated = to_seconds(simulation.statistics().virtual_time);
    std::fprintf(stderr, "%.1f s simulated in %.2f s, %.0f times real time\n", simulated, wall, simulated / wall);
    reports.push_back({policy, config.workload.seed, &simulation.statistics(), &simulation.faults()});
  }
  const std::string report = config.json ? report_json(reports) : report_text(reports);
  std::fwrite(report.data(), 1, report.size(), stdout);
  return kept ? 0 : 1;
}

}  // namespace chasqui
