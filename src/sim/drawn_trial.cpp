#include "sim/drawn_trial.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/json_writer.h"
#include "sim/random.h"

namespace chasqui {
namespace {

constexpr std::size_t kFaultsTold = 8;
// A prompt of 16,000 tokens and its answer.
constexpr TokenCount kTrialContext = 17'000;

template <class Value, std::size_t count>
Value pick(Random& dice, const std::array<Value, count>& values) {
  return values[static_cast<std::size_t>(dice.between(0, count - 1))];
}

Distribution drawn_from(const char* text) { return *Distribution::parse(text, "trial"); }

void draw_server(Random& dice, const CostPreset& preset, SimulationConfig& run) {
  SchedulerConfig& scheduler = run.scheduler;
  const std::int32_t slots = pick<std::int32_t, 6>(dice, {1, 2, 4, 8, 16, 64});
  const bool unified = dice.chance(0.2);
  // One pool has room for the longest sequence, and for a part of what all slots could want.
  scheduler.kv = {slots, slots * kTrialContext, kTrialContext, unified};
  if (unified) scheduler.kv.cells = std::max(kTrialContext, slots * kTrialContext / 8);
  scheduler.dense_slots = !unified;
  scheduler.rows_max = pick<TokenCount, 3>(dice, {128, 512, 2048});
  scheduler.cuts_steps = dice.chance(0.8);
  scheduler.targets.prefill_step = dice.chance(0.2) ? milliseconds(dice.between(20, 5000)) : Duration::zero();
  scheduler.reuse.shared_by_tenants = dice.chance(0.5);
  if (dice.chance(0.5)) scheduler.reuse.cache.bytes = static_cast<std::size_t>(dice.between(1, 200'000)) * kTokenBytes;
  run.cost = preset.cost;
  run.cost.unified = unified;
  run.cost.noise = dice.chance(0.5) ? 0.2 : 0;
  if (dice.chance(0.3)) {
    run.cost.neighbour_factor = 4;
    run.cost.neighbour_every_s = 100;
    run.cost.neighbour_stays_s = 20;
  }
  if (dice.chance(0.5)) run.disturbances = {0.003, 0.002, 0.01, 0.05};
  run.gate.queue_requests = 100'000;
  run.gate.queue_tokens = 0;
}

void draw_load(Random& dice, std::int32_t slots, DrawnTrial& trial) {
  WorkloadConfig& load = trial.workload;
  load.prompt = drawn_from(pick<const char*, 4>(
      dice, {"16-200", "lognormal:300:1.2:16000", "85%16-300,15%4000-16000", "80%16-100,20%300-3000"}));
  load.output = drawn_from(pick<const char*, 3>(dice, {"1-16", "lognormal:50:1:600", "90%1-30,10%300-900"}));
  if (dice.chance(0.5)) load.max_tokens = 950;
  load.classes = pick<std::array<double, kServiceClasses>, 4>(dice, {{{1, 2, 1}, {1, 8, 1}, {8, 1, 1}, {1, 1, 8}}});
  if (dice.chance(0.7)) load.tenants = {{20, 1}, {3, 1}, {1, 2}, {1, 1}};
  // Clients that ask again, a crowd that comes at once, or a stream of requests.
  if (dice.chance(0.5)) {
    trial.run.clients.clients = static_cast<std::int32_t>(dice.between(1, 4 * slots + 4));
    trial.run.clients.think_ms = drawn_from(pick<const char*, 3>(dice, {"0", "0-2000", "0-60000"}));
  } else {
    load.rate = pick<double, 3>(dice, {1e4, 10, 0.2});
  }
  if (dice.chance(0.5)) {
    load.prefixes = 4;
    load.prefix_tokens = drawn_from("50-900");
    load.prefix_share = 0.6;
    load.prompt = drawn_from("16-2000");
  }
  load.leaving_share = dice.chance(0.5) ? 0.15 : 0;
  load.leaving_ms = drawn_from("1-100000");
  load.timeout_share = dice.chance(0.3) ? 0.2 : 0;
  load.timeout_ms = drawn_from("1000-600000");
  load.slow_share = dice.chance(0.3) ? 0.1 : 0;
}

// … and what a server may have beside: with dice of its own, so that a trial is otherwise as it was without.
void draw_features(Random& dice, DrawnTrial& trial) {
  SimulationConfig& run = trial.run;
  SchedulerConfig& scheduler = run.scheduler;
  WorkloadConfig& load = trial.workload;
  const bool unified = scheduler.kv.unified;
  if (dice.chance(0.25)) run.workers = static_cast<std::size_t>(dice.between(2, 3));
  run.clients.sessions = run.workers > 1 && run.clients.clients > 0 && dice.chance(0.5);
  if (dice.chance(0.3)) {
    const double factor = pick<double, 3>(dice, {0.2, 0.5, 3});
    for (ClassTarget& target : scheduler.targets.of) {
      target.next_token = std::chrono::duration_cast<Duration>(target.next_token * factor);
      target.first_token = std::chrono::duration_cast<Duration>(target.first_token * factor);
    }
  }
  // A model whose memory is a state: it is neither cut nor trimmed.
  const bool state = dice.chance(0.15);
  scheduler.reuse.cache.cut_anywhere = scheduler.exchanges = !state;
  if (state) scheduler.cuts_joined = false;
  if (state && dice.chance(0.7)) run.checkpoint_every = 512;
  scheduler.reuse.kv_block = state ? 0 : pick<TokenCount, 3>(dice, {0, 32, 256});
  scheduler.reuse.kv_token_bytes = kTokenBytes;
  scheduler.reuse.keeps_slots = !unified;
  scheduler.reuse.slots_ready = slots_kept_ready(scheduler.kv.slots);
  if (scheduler.reuse.cache.bytes > 0 && dice.chance(0.4)) {
    scheduler.reuse.disk.emplace();
    scheduler.reuse.disk->bytes = static_cast<std::uint64_t>(dice.between(1, 4'000'000));
    scheduler.reuse.disk->queue_bytes = static_cast<std::size_t>(dice.between(1, 400'000));
    run.cost.disk.failed = dice.chance(0.5) ? 0.02 : 0;
    // More prefixes than there is memory for, or files would seldom be read.
    if (dice.chance(0.7)) {
      scheduler.reuse.cache.bytes = static_cast<std::size_t>(dice.between(1000, 6000)) * run.workers * kTokenBytes;
      load.prefixes = 12;
      load.prefix_tokens = drawn_from("200-1500");
      load.prefix_share = 0.9;
      load.prompt = drawn_from("16-500");
    }
  }
  if (!state && dice.chance(0.4)) {
    SpeculationConfig& speculation = scheduler.speculation;
    speculation.draft_tokens_max = static_cast<TokenCount>(dice.between(1, 8));
    speculation.draft_tokens_min = dice.chance(0.2) ? 1 : 0;
    speculation.outputs_max = std::min(scheduler.rows_max, 8 * scheduler.kv.slots);
    speculation.draft_model = dice.chance(0.5);
    speculation.heads = speculation.draft_model && dice.chance(0.4);
    run.acceptance = pick<double, 3>(dice, {0.1, 0.6, 0.95});
    run.disturbances.undrafted = dice.chance(0.5) ? 0.02 : 0;
    load.repeats = pick<double, 3>(dice, {0, 0.8, 0.98});
  }
  if (dice.chance(0.25)) {
    load.adapters = static_cast<std::int32_t>(dice.between(1, 4));
    load.adapter_share = pick<double, 2>(dice, {0.5, 1});
    run.cost.adapter_us = pick<double, 2>(dice, {0, 20'000});
  }
  // Agents: what was said comes back with each turn.
  if (run.clients.clients > 0 && dice.chance(0.4)) {
    run.clients.turns = pick<std::int32_t, 3>(dice, {3, 12, 40});
    run.clients.tool_ms = drawn_from(pick<const char*, 2>(dice, {"0", "50-3000"}));
    load.call_share = pick<double, 2>(dice, {0, 0.8});
    load.branch_share = 0.1;
  }
}

std::string whole(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f", value);
  return text.data();
}

}  // namespace

DrawnTrial draw_trial(std::uint64_t seed, const CostPreset& preset, std::uint64_t requests) {
  Random dice(seed, 7);
  DrawnTrial trial;
  trial.run.seed = trial.workload.seed = seed;
  trial.workload.requests = requests;
  draw_server(dice, preset, trial.run);
  draw_load(dice, trial.run.scheduler.kv.slots, trial);
  Random more(seed, 8);
  draw_features(more, trial);
  return trial;
}

TrialsReport run_trials(std::uint64_t seed, std::uint64_t trials, const CostPreset& preset, std::uint64_t requests) {
  TrialsReport report;
  report.preset = preset.name;
  for (std::uint64_t i = 0; i < trials; ++i) {
    const DrawnTrial trial = draw_trial(seed + i, preset, requests);
    DrawnWorkload workload(trial.workload);
    Simulation simulation(trial.run, workload);
    const bool kept = simulation.run();
    const Statistics& statistics = simulation.statistics();
    ++report.trials;
    report.requests += statistics.all().requests;
    report.steps += statistics.steps().count();
    report.preemptions += statistics.all().preemptions;
    report.cut_steps += statistics.steps().aborted;
    report.virtual_s += to_seconds(statistics.virtual_time);
    report.draft_tokens += statistics.drafted;
    report.adapter_switches += statistics.adapter_switches;
    report.disk_reads += statistics.disk_reads;
    report.most_passed = std::max(report.most_passed, statistics.most_passed);
    if (kept) continue;
    ++report.broken;
    if (report.faults.size() == kFaultsTold) continue;
    report.faults.push_back("seed " + std::to_string(seed + i) + ": " + simulation.faults().lines().front());
  }
  return report;
}

std::string trials_text(const std::vector<TrialsReport>& reports) {
  std::string out;
  for (const TrialsReport& each : reports) {
    out += each.preset + ": " + std::to_string(each.broken) + " of " + std::to_string(each.trials) + " broken; " +
           std::to_string(each.requests) + " requests, " + std::to_string(each.steps) + " steps, " +
           std::to_string(each.preemptions) + " preemptions, " + std::to_string(each.cut_steps) + " steps cut, " +
           std::to_string(each.draft_tokens) + " draft tokens, " + std::to_string(each.adapter_switches) +
           " changes of adapters, " + std::to_string(each.disk_reads) + " reads from disk, passed by " +
           std::to_string(each.most_passed) + " at most, " + whole(each.virtual_s / 3600) + " hours\n";
    for (const std::string& fault : each.faults) out += "  " + fault + '\n';
  }
  return out;
}

std::string trials_json(const std::vector<TrialsReport>& reports) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("trials");
  for (const TrialsReport& each : reports) {
    json.begin_object();
    json.field("preset", each.preset);
    json.field("trials", each.trials);
    json.field("broken", each.broken);
    json.field("requests", each.requests);
    json.field("steps", each.steps);
    json.field("preemptions", each.preemptions);
    json.field("cut_steps", each.cut_steps);
    json.field("draft_tokens", each.draft_tokens);
    json.field("adapter_switches", each.adapter_switches);
    json.field("disk_reads", each.disk_reads);
    json.field("most_passed", each.most_passed);
    json.field("virtual_s", each.virtual_s);
    json.begin_array("faults");
    for (const std::string& fault : each.faults) json.string(fault);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace chasqui
