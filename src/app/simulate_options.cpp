#include "app/simulate_options.h"

#include <cmath>
#include <functional>

#include <CLI/CLI.hpp>

namespace chasqui {
namespace {

using Words = std::vector<std::string>;

// An option whose text `read` turns into something; it throws what CLI11 shows as a usage error.
CLI::Option* add_text(CLI::App& app, const std::string& name, const std::string& type, const std::string& help,
                      std::function<void(const std::string&)> read) {
  return app.add_option_function<std::string>(name, std::move(read), help)->type_name(type);
}

CLI::Option* add_distribution(CLI::App& app, const std::string& name, Distribution& target, const std::string& help) {
  return add_text(app, name, "DIST", help, [name, &target](const std::string& text) {
    Result<Distribution> parsed = Distribution::parse(text, name);
    if (!parsed) throw CLI::ValidationError(parsed.error().message);
    target = *parsed;
  });
}

CLI::Option* add_share(CLI::App& app, const std::string& name, double& target, const std::string& help) {
  return app.add_option(name, target, help)->check(CLI::Range(0.0, 1.0))->type_name("SHARE")->capture_default_str();
}

template <class Number>
CLI::Option* add_number(CLI::App& app, const std::string& name, Number& target, Number low, Number high,
                        const std::string& help) {
  return app.add_option(name, target, help)->check(CLI::Range(low, high))->type_name("N")->capture_default_str();
}

CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& target, const std::string& help) {
  const auto store = [&target](double s) {
    target = from_seconds(s);
  };
  return app.add_option_function<double>(name, store, help)->check(CLI::Range(0.0, 1e9))->type_name("SECONDS");
}

double parse_number(const std::string& text, const std::string& option, double low) {
  std::size_t used = 0;
  double value = NAN;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = std::string::npos;
  }
  if (used != text.size() || !(value >= low && value <= 1e9)) {
    throw CLI::ValidationError(option + ": '" + text + "' is not a number that fits here");
  }
  return value;
}

void read_classes(const std::string& text, std::array<double, kServiceClasses>& shares) {
  shares = {};
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const Words words = CLI::detail::split(part, ':');
    bool known = false;
    for (std::size_t i = 0; i < kServiceClasses && words.size() == 2; ++i) {
      if (words[0] != name(static_cast<ServiceClass>(i))) continue;
      shares[i] = parse_number(words[1], "--classes", 0);
      known = true;
    }
    if (!known) throw CLI::ValidationError("--classes: '" + part + "' is not CLASS:SHARE");
  }
  if (shares[0] + shares[1] + shares[2] <= 0) throw CLI::ValidationError("--classes: the shares are all zero");
}

void read_tenants(const std::string& text, std::vector<TenantShare>& tenants) {
  tenants.clear();
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const Words words = CLI::detail::split(part, ':');
    if (words.empty() || words.size() > 2)
      throw CLI::ValidationError("--tenants: '" + part + "' is not SHARE[:WEIGHT]");
    tenants.push_back({parse_number(words[0], "--tenants", 1e-6), 1});
    if (words.size() == 2) tenants.back().weight = parse_number(words[1], "--tenants", 1e-6);
  }
}

void read_cost(const std::string& text, const std::string& option, StepCost& cost) {
  const Words words = CLI::detail::split(text, ':');
  if (words.size() != 3) throw CLI::ValidationError(option + ": needs PASS:ROW:CELL in microseconds");
  cost = {parse_number(words[0], option, 0), parse_number(words[1], option, 0), parse_number(words[2], option, 0)};
}

void read_neighbour(const std::string& text, CostConfig& cost) {
  const Words words = CLI::detail::split(text, ':');
  if (words.size() != 3) throw CLI::ValidationError("--neighbour: needs FACTOR:EVERY_S:STAYS_S");
  cost.neighbour_factor = parse_number(words[0], "--neighbour", 1e-3);
  cost.neighbour_every_s = parse_number(words[1], "--neighbour", 1e-3);
  cost.neighbour_stays_s = parse_number(words[2], "--neighbour", 1e-3);
}

std::string policy_names() {
  std::string names;
  for (const auto& [name, unused] : slot_policies()) names += (names.empty() ? "" : " or ") + name;
  return names;
}

void read_policies(const std::string& text, std::vector<std::string>& policies) {
  policies = CLI::detail::split(text, ',');
  for (const std::string& name : policies) {
    if (slot_policies().contains(name)) continue;
    throw CLI::ValidationError("there is no policy '" + name + "': " + policy_names());
  }
}

// Before the options of single costs, which go on from here.
void read_presets(const std::string& text, SimulateConfig& config) {
  Result<std::vector<CostPreset>> presets = find_cost_presets(text, "--preset");
  if (!presets) throw CLI::ValidationError(presets.error().message);
  config.presets = std::move(*presets);
  config.run.cost = config.presets.front().cost;
  config.cell_bytes = config.presets.front().cell_bytes;
}

// Milliseconds for each class.
void read_targets(const std::string& text, const std::string& option, SchedulerTargets& targets,
                  Duration ClassTarget::*time) {
  const Words words = CLI::detail::split(text, ',');
  if (words.size() != kServiceClasses) throw CLI::ValidationError(option + ": needs MS,MS,MS, one for each class");
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    targets.of[c].*time = from_milliseconds(parse_number(words[c], option, 1));
  }
}

void add_target_options(CLI::App& app, SchedulerConfig& scheduler) {
  SchedulerTargets& targets = scheduler.targets;
  add_text(
      app, "--ttft-target", "MS,MS,MS", "to the first token, for each class (1000,5000,30000)",
      [&targets](const std::string& text) { read_targets(text, "--ttft-target", targets, &ClassTarget::first_token); });
  add_text(
      app, "--itl-target", "MS,MS,MS", "from token to token beside prompts (100,150,1000)",
      [&targets](const std::string& text) { read_targets(text, "--itl-target", targets, &ClassTarget::next_token); });
  add_text(app, "--prefill-step", "MS", "longest step that only prefills prompts; 0: as long as streams allow",
           [&targets](const std::string& text) {
             targets.prefill_step = from_milliseconds(parse_number(text, "--prefill-step", 0));
           });
  app.add_flag("!--no-step-cuts", scheduler.cuts_steps, "arrivals cut no step that reads prompts");
}

void add_workload_options(CLI::App& app, SimulateConfig& config) {
  WorkloadConfig& workload = config.workload;
  app.option_defaults()->group("Requests");
  add_number<std::uint64_t>(app, "--requests", workload.requests, 1, 1'000'000'000, "how many");
  add_number<std::uint64_t>(app, "--seed", workload.seed, 0, UINT64_MAX, "the same seed is the same run");
  add_number(app, "--rate", workload.rate, 1e-6, 1e9, "requests a second, evenly random");
  add_number(app, "--clients", config.run.clients.clients, 0, 1'000'000,
             "instead of a rate: so many clients, each with one request at a time");
  add_distribution(app, "--think", config.run.clients.think_ms, "milliseconds from an answer to the next request");
  add_distribution(app, "--prompt", workload.prompt, "tokens of a prompt (64)");
  add_distribution(app, "--output", workload.output, "tokens of an answer (32)");
  add_number<std::int64_t>(app, "--max-tokens", workload.max_tokens, 0, 1 << 24,
                           "what clients ask for; 0: exactly what they get");
  add_text(app, "--classes", "CLASS:SHARE,…", "shares of interactive, standard, background",
           [&workload](const std::string& text) { read_classes(text, workload.classes); });
  add_text(app, "--tenants", "SHARE[:WEIGHT],…", "one for each tenant: its share of the requests and its weight",
           [&workload](const std::string& text) { read_tenants(text, workload.tenants); });
  add_number(app, "--prefixes", workload.prefixes, 0, 100'000, "how many prefixes requests share");
  add_distribution(app, "--prefix-tokens", workload.prefix_tokens, "tokens of a prefix (256)");
  add_share(app, "--prefix-share", workload.prefix_share, "of requests that begin with a prefix");
  add_share(app, "--repeats", workload.repeats, "of an answer's tokens that say the prompt again, for speculation");
  add_number(app, "--adapters", workload.adapters, 0, PlannedRequest::kAdaptersMax,
             "sets of adapters that requests want");
  add_share(app, "--adapter-share", workload.adapter_share, "of requests that want one of them");
  app.add_flag("--sessions", config.run.clients.sessions, "with --clients: all requests of one stay with one worker");
  add_number(app, "--turns", config.run.clients.turns, 0, 100'000,
             "with --clients: the requests of each are a conversation of so many turns, then another; 0: none");
  add_share(app, "--calls", workload.call_share, "of answers that call a tool, whose result is the next turn");
  add_distribution(app, "--tool", config.run.clients.tool_ms, "milliseconds from such an answer to the next turn (0)");
  add_share(app, "--branches", workload.branch_share, "of turns that leave out the latest one, as who edits a message");
  add_share(app, "--cancel", workload.leaving_share, "of clients that leave early, in any phase");
  add_distribution(app, "--cancel-ms", workload.leaving_ms, "the latest time at which they leave, for a third of them");
  add_share(app, "--timeouts", workload.timeout_share, "of requests with a time limit");
  add_distribution(app, "--timeout-ms", workload.timeout_ms, "that limit (30000)");
  add_share(app, "--slow", workload.slow_share, "of clients that read slowly");
  add_number(app, "--slow-reads", workload.slow_reads_per_s, 1e-3, 1e6, "tokens that those read in a second");
  add_number(app, "--unread", config.run.clients.unread_max, 1, 1 << 24,
             "tokens that wait for a slow client before it is cancelled");
  add_number(app, "--tries", config.run.clients.tries_max, 1, 1000, "how often a refused client tries in all");
  app.add_option("--trace", config.trace, "read the requests from this file instead")->type_name("FILE");
  app.add_option("--write-trace", config.write_trace, "write what the seed draws to this file, and run nothing")
      ->type_name("FILE")
      ->excludes("--trace");
}

void add_server_options(CLI::App& app, SimulateConfig& config) {
  SchedulerConfig& scheduler = config.run.scheduler;
  app.option_defaults()->group("Server");
  add_number(app, "--parallel", scheduler.kv.slots, 1, 256, "sequences at once");
  add_number(app, "--ctx-slot", config.context, 8, 1 << 20, "cells of one slot");
  add_number(app, "--ctx-size", scheduler.kv.cells, 0, 1 << 28, "cells of all; 0: full contexts for all slots");
  app.add_flag("--kv-unified", scheduler.kv.unified, "one pool of cells for all slots instead of a stream each");
  add_number(app, "--batch-size", scheduler.rows_max, 1, 1 << 16, "rows of one batch");
  add_number<std::size_t>(app, "--workers", config.run.workers, 1, 64,
                          "each with --parallel slots and a cache of its own");
  add_target_options(app, scheduler);
  add_number(app, "--draft-tokens", scheduler.speculation.draft_tokens_max, 0, Drafts::kMost,
             "that one sequence checks in one step; 0: no speculation");
  app.add_flag("--draft-model", scheduler.speculation.draft_model,
               "a draft model makes them, not what was said before");
  app.add_flag("--draft-heads", scheduler.speculation.heads, "… heads of the model")->needs("--draft-model");
  add_share(app, "--acceptance", config.run.acceptance, "of the tokens of a draft model, that are what will be said");
  add_number<std::int64_t>(app, "--cache-mib", config.cache_mib, 0, 1 << 30, "MiB of the prefix cache; 0: none");
  add_number<std::int64_t>(app, "--cell-bytes", config.cell_bytes, 1, 1 << 30, "of a cell in it");
  add_number<std::int64_t>(app, "--disk-mib", config.disk_mib, 0, 1 << 30, "MiB of files below the cache; 0: none");
  app.add_flag("--cache-shared", scheduler.reuse.shared_by_tenants, "tenants share what is cached");
  app.add_flag("!--kv-uncut", scheduler.reuse.cache.cut_anywhere, "a snapshot is good as a whole only");
  AdmissionGateConfig& gate = config.run.gate;
  add_number<std::size_t>(app, "--queue-requests", gate.queue_requests, 0, 1'000'000, "that may wait for a slot");
  add_number<std::int64_t>(app, "--queue-tokens", gate.queue_tokens, 0, 1LL << 40, "of prompts that may wait; 0: any");
  const auto all_classes = [&gate](double s) {
    gate.queue_wait.fill(from_seconds(s));
  };
  app.add_option_function<double>("--queue-wait", all_classes,
                                  "forecast wait over which requests are refused; 0: never")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("SECONDS");
  add_number<std::size_t>(app, "--tenant-requests", gate.tenant_requests, 0, 1'000'000,
                          "of one tenant at once; 0: any");
  add_text(app, "--policy", "POLICY", policy_names(),
           [&config](const std::string& text) { read_policies(text, config.policies); });
  add_text(app, "--compare", "POLICY,…", "the same requests under each of these, side by side",
           [&config](const std::string& text) { read_policies(text, config.policies); })
      ->excludes("--policy");
}

void add_cost_options(CLI::App& app, SimulateConfig& config) {
  CostConfig& cost = config.run.cost;
  app.option_defaults()->group("Steps");
  add_text(app, "--preset", "MODEL-MACHINE", "costs of 0.5b, 1.1b, 8b or 70b on a laptop, desktop, server or gpu",
           [&config](const std::string& text) { read_presets(text, config); });
  add_text(app, "--decode-cost", "PASS:ROW:CELL", "microseconds (26000:3900:4.1, as a 0.5 B model on two cores)",
           [&cost](const std::string& text) { read_cost(text, "--decode-cost", cost.decode); });
  add_text(app, "--prefill-cost", "PASS:ROW:CELL", "the same for prefill steps (26000:3300:1)",
           [&cost](const std::string& text) { read_cost(text, "--prefill-cost", cost.prefill); });
  add_number(app, "--copy-cost", cost.copy_us, 0.0, 1e6, "microseconds for a cell copied out of a slot or into one");
  add_number(app, "--launch-cost", cost.launch_us, 0.0, 1e6, "microseconds for each pass, whatever it computes");
  add_number(app, "--adapter-cost", cost.adapter_us, 0.0, 1e9, "microseconds more, for a step with other adapters");
  add_share(app, "--draft-cost", cost.draft_share, "of the model's costs, that a draft model takes");
  add_number(app, "--disk-cost", config.disk_us, 0.0, 1e6,
             "microseconds for a cell read from a file or written to one");
  add_number(app, "--noise", cost.noise, 0.0, 3.0, "sigma of a lognormal factor of each step");
  add_text(app, "--neighbour", "FACTOR:EVERY_S:STAYS_S", "another process that makes all steps slower now and then",
           [&cost](const std::string& text) { read_neighbour(text, cost); });
  DisturbanceConfig& disturbances = config.run.disturbances;
  add_share(app, "--fail", disturbances.failed, "of steps that fail");
  add_share(app, "--no-room", disturbances.no_room, "of steps that find no cells");
  add_share(app, "--abort", disturbances.aborted, "of steps that are cut off");
  add_share(app, "--unrestored", disturbances.unrestored, "of steps with a snapshot that cannot be brought back");
}

void add_report_options(CLI::App& app, SimulateConfig& config) {
  app.option_defaults()->group("Report");
  add_text(app, "--goodput", "LIMITS", "what a good answer keeps, in ms: ttft:1000,itl:200,tpot:100,e2e:5000",
           [&config](const std::string& text) {
             Result<Objective> parsed = Objective::parse(text, "--goodput");
             if (!parsed) throw CLI::ValidationError(parsed.error().message);
             config.run.objective = *parsed;
           });
  app.add_flag("--json", config.json, "write JSON");
  add_number<std::uint64_t>(app, "--check", config.trials, 0, 1'000'000,
                            "run so many drawn servers and loads instead, for each preset (all), and check them");
  add_text(app, "--ablate", "RULE,…", "run fixed loads without each of these rules instead, for each preset (four)",
           [&config](const std::string& text) {
             Result<std::vector<AblationRule>> rules = find_ablation_rules(text, "--ablate");
             if (!rules) throw CLI::ValidationError(rules.error().message);
             config.ablated = std::move(*rules);
           })
      ->excludes("--check");
  PatienceConfig& patience = config.run.patience;
  add_number<std::uint64_t>(app, "--patience-steps", patience.decode_steps, 1, UINT64_MAX,
                            "steps for which a decoding sequence may be left out");
  add_seconds(app, "--patience-decode", patience.decode_wait, "… or how long, if that is longer");
  add_number(app, "--passed", patience.passed, 0, 1 << 20, "younger requests that may pass one of their kind");
  add_seconds(app, "--standstill", patience.standstill, "how long nothing may be computed while there is work");
}

}  // namespace

CLI::App* add_simulate(CLI::App& app, SimulateConfig& config) {
  CLI::App* simulate = app.add_subcommand("simulate", "Run the scheduler on virtual time and check its promises");
  config.run.scheduler.kv.slots = 16;
  config.run.scheduler.rows_max = 512;
  add_workload_options(*simulate, config);
  add_server_options(*simulate, config);
  add_cost_options(*simulate, config);
  add_report_options(*simulate, config);
  return simulate;
}

}  // namespace chasqui
