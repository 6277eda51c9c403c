#include "sim/ablation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json_writer.h"
#include "sim/drawn_workload.h"
#include "sim/simulation.h"

namespace chasqui {
namespace {

constexpr AblationRule kRules[] = {
    {"classes", &PolicyRules::classes},
    {"tenants", &PolicyRules::tenants},
    {"short_work", &PolicyRules::short_work},
    {"overtaking", &PolicyRules::overtaking},
    {"class_preempts", &PolicyRules::class_preempts},
    {"slices", &PolicyRules::slices},
    {"shortest_rows", &PolicyRules::shortest_rows},
    {"reading_turns", &PolicyRules::reading_turns},
    {"targets", &PolicyRules::targets},
    {"efficient_chunks", &PolicyRules::efficient_chunks},
    {"stretch", &PolicyRules::stretch},
    {"step_cuts", &PolicyRules::step_cuts},
    {"dense_slots", &PolicyRules::dense_slots},
    {"hole_rows", &PolicyRules::hole_rows},
    {"pad_decode", &PolicyRules::pad_decode},
    {"join_prompts", &PolicyRules::join_prompts},
    {"slowdown", &PolicyRules::slowdown},
    {"prefix_waits", &PolicyRules::prefix_waits},
};

// A server, and the clients that it has.
struct AblationLoad {
  const char* name;
  std::int32_t slots;
  std::int32_t clients;  // 0: all requests at once
  const char* prompt;
  const char* output;
  std::array<double, kServiceClasses> classes = {0, 1, 0};
  std::vector<TenantShare> tenants = {{}};
  bool prefixes = false;   // most requests begin with one of four
  bool neighbour = false;  // another process takes the cores now and then
  int think_steps = 0;     // decode steps of a mean pause between an answer and the next request
};

const std::vector<AblationLoad>& ablation_loads() {
  static const std::vector<AblationLoad> loads = {
      {"chat", 16, 24, "lognormal:600:1:8000", "lognormal:100:0.6:600"},
      {"streams", 32, 32, "16-64", "100-300"},
      {"classes", 32, 32, "16-200", "50-200", {1, 2, 1}},
      {"crowd", 16, 0, "20-60", "8-32"},
      {"queue", 8, 48, "85%16-300,15%1000-4000", "20-200", {1, 6, 1}},
      {"visits", 8, 40, "16-100", "50-200", {1, 4, 0}, {{}}, false, false, 400},
      {"long", 16, 8, "70%16-200,30%4000-8000", "50-150"},
      {"long_prompts", 8, 8, "1000-8000", "8-40"},
      {"tenants", 8, 111, "30-100", "200-400", {0, 1, 0}, {{1, 1}, {10, 1}, {100, 1}}},
      {"prefixes", 16, 24, "16-100", "20-100", {0, 1, 0}, {{}}, true},
      {"neighbour", 16, 24, "lognormal:600:1:8000", "lognormal:100:0.6:600", {1, 2, 0}, {{}}, false, true},
  };
  return loads;
}

constexpr TokenCount kContext = 10'000;
// Of a batch: more than a step has, so that the rules decide how long it is.
constexpr TokenCount kRows = 2048;

SimulationConfig simulation_of(const AblationLoad& load, const CostPreset& preset, const PolicyRules& rules) {
  SimulationConfig config;
  SchedulerConfig& scheduler = config.scheduler;
  scheduler.kv = {load.slots, load.slots * kContext, kContext, false};
  scheduler.rows_max = kRows;
  scheduler.dense_slots = true;
  scheduler.exchanges = true;
  scheduler.targets.rules = rules;
  scheduler.cuts_steps = rules.step_cuts;
  scheduler.reuse.waits = rules.prefix_waits;
  scheduler.reuse.kv_block = 32;
  scheduler.reuse.kv_token_bytes = kTokenBytes;
  scheduler.reuse.shared_by_tenants = true;
  if (load.prefixes) scheduler.reuse.cache.bytes = std::size_t{200'000} * kTokenBytes;
  config.cost = preset.cost;
  if (load.neighbour) {
    config.cost.neighbour_factor = 3;
    config.cost.neighbour_every_s = config.cost.neighbour_stays_s = 20;
  }
  config.clients.clients = load.clients;
  if (load.think_steps > 0) {
    const double step_ms =
        (config.cost.decode.pass_us + config.cost.launch_us + load.slots * config.cost.decode.row_us) / 1000;
    const auto most = static_cast<std::int64_t>(2 * load.think_steps * step_ms) + 1;
    config.clients.think_ms = *Distribution::parse("0-" + std::to_string(most), "ablation");
  }
  config.gate.queue_requests = 100'000;
  config.gate.queue_tokens = 0;
  // Without a rule a promise may well be broken: how far is one of the figures.
  config.patience = {1u << 30, seconds(1'000'000'000), 1 << 20, seconds(1)};
  return config;
}

WorkloadConfig workload_of(const AblationLoad& load, const AblationConfig& ablation, std::uint64_t seed) {
  WorkloadConfig config;
  config.seed = seed;
  config.requests = ablation.requests;
  config.rate = 1e6;
  config.prompt = *Distribution::parse(load.prompt, "ablation");
  config.output = *Distribution::parse(load.output, "ablation");
  config.classes = load.classes;
  config.tenants = load.tenants;
  if (load.prefixes) {
    config.prefixes = 4;
    config.prefix_tokens = *Distribution::parse("500-2000", "ablation");
    config.prefix_share = 0.8;
  }
  return config;
}

using Figures = std::array<double, AblationFigure::kFigures>;

Figures figures_of(const Statistics& run) {
  const Group& all = run.all();
  const Group& interactive = run.groups()[1];
  const double steps = std::max<double>(1, static_cast<double>(run.steps().count()));
  return {static_cast<double>(all.tokens) / to_seconds(run.virtual_time),
          all.ttft.at(0.5),
          all.ttft.at(0.95),
          interactive.requests > 0 ? interactive.ttft.at(0.95) : 0,
          all.itl.at(0.99),
          static_cast<double>(run.steps().passes) / steps,
          run.contention.jain(),
          static_cast<double>(run.most_passed)};
}

// The geometric mean over the seeds of each figure that is never 0.
Figures run_load(const AblationLoad& load, const CostPreset& preset, const PolicyRules& rules,
                 const AblationConfig& ablation) {
  Figures product;
  product.fill(1);
  for (std::uint64_t i = 0; i < ablation.seeds; ++i) {
    SimulationConfig config = simulation_of(load, preset, rules);
    config.seed = ablation.seed + i;
    DrawnWorkload workload(workload_of(load, ablation, config.seed));
    Simulation simulation(config, workload);
    CHECK(simulation.run(), simulation.faults().lines().front());
    const Figures figures = figures_of(simulation.statistics());
    for (std::size_t f = 0; f < figures.size(); ++f) product[f] *= figures[f];
  }
  for (double& each : product) each = std::pow(each, 1.0 / static_cast<double>(ablation.seeds));
  return product;
}

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (ratio - 1));
  return text;
}

double ratio(const AblationRun& run, std::size_t figure) {
  return run.with[figure] > 0 ? run.without[figure] / run.with[figure] : 1;
}

// How a figure changes without the rule: in the geometric mean, at least and at most, and where that is.
void append_summary(std::string& out, const std::vector<const AblationRun*>& runs, std::size_t figure) {
  double log_sum = 0;
  double count = 0;
  const AblationRun* least = nullptr;
  const AblationRun* most = nullptr;
  for (const AblationRun* run : runs) {
    if (run->with[figure] <= 0) continue;
    log_sum += std::log(ratio(*run, figure));
    ++count;
    if (least == nullptr || ratio(*run, figure) < ratio(*least, figure)) least = run;
    if (most == nullptr || ratio(*run, figure) > ratio(*most, figure)) most = run;
  }
  if (least == nullptr || (ratio(*least, figure) == 1 && ratio(*most, figure) == 1)) return;
  const auto place = [figure](const AblationRun& run) {
    return percent(ratio(run, figure)) + " (" + run.load + ", " + run.preset + ')';
  };
  out += "  " + std::string(AblationFigure::names[figure]) + ": mean " + percent(std::exp(log_sum / count)) +
         ", least " + place(*least) + ", most " + place(*most) + '\n';
}

}  // namespace

const std::array<const char*, AblationFigure::kFigures> AblationFigure::names = {
    "tokens_per_s", "ttft_p50",        "ttft_p95", "interactive_ttft_p95",
    "itl_p99",      "passes_per_step", "jain",     "most_passed"};

const std::vector<AblationRule>& ablation_rules() {
  static const std::vector<AblationRule> rules(std::begin(kRules), std::end(kRules));
  return rules;
}

Result<std::vector<AblationRule>> find_ablation_rules(std::string_view names, const std::string& field) {
  if (names == "all") return ablation_rules();
  std::string all;
  for (const AblationRule& rule : ablation_rules()) all += (all.empty() ? "" : ", ") + std::string(rule.name);
  std::vector<AblationRule> found;
  for (;;) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const auto rule = std::ranges::find_if(kRules, [name](const AblationRule& each) { return name == each.name; });
    if (rule == std::end(kRules)) {
      return invalid_field(field, field + ": there is no rule '" + std::string(name) + "'; there are " + all);
    }
    found.push_back(*rule);
    if (comma == std::string_view::npos) return found;
    names.remove_prefix(comma + 1);
  }
}

std::vector<AblationRun> ablate(const AblationConfig& config, const std::vector<AblationRule>& rules,
                                const std::vector<CostPreset>& presets) {
  std::vector<AblationRun> runs;
  for (const CostPreset& preset : presets) {
    for (const AblationLoad& load : ablation_loads()) {
      const Figures with = run_load(load, preset, {}, config);
      for (const AblationRule& rule : rules) {
        PolicyRules without;
        without.*rule.rule = false;
        runs.push_back({rule.name, load.name, preset.name, with, run_load(load, preset, without, config)});
      }
    }
  }
  return runs;
}

std::string ablation_text(const std::vector<AblationRun>& runs) {
  std::string out;
  std::vector<std::string> rules;
  for (const AblationRun& run : runs) {
    if (std::ranges::find(rules, run.rule) == rules.end()) rules.push_back(run.rule);
  }
  for (const std::string& rule : rules) {
    std::vector<const AblationRun*> its;
    for (const AblationRun& run : runs) {
      if (run.rule == rule) its.push_back(&run);
    }
    out += "without " + rule + ":\n";
    for (std::size_t figure = 0; figure < AblationFigure::kFigures; ++figure) append_summary(out, its, figure);
  }
  return out;
}

std::string ablation_json(const std::vector<AblationRun>& runs) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("runs");
  for (const AblationRun& run : runs) {
    json.begin_object();
    json.field("rule", run.rule);
    json.field("load", run.load);
    json.field("preset", run.preset);
    for (const auto& [name, figures] : {std::pair{"with", &run.with}, std::pair{"without", &run.without}}) {
      json.begin_object(name);
      for (std::size_t i = 0; i < figures->size(); ++i) json.field(AblationFigure::names[i], (*figures)[i]);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace chasqui
