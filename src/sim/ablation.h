// What each rule of the policy is worth: a fixed set of loads is run with the costs of some presets, with all rules and
// without one of them, over the same requests. Every load is of clients that ask again, or of a crowd that comes at
// once, so that it is as heavy for a slow machine as for a fast one. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sched/policy_rules.h"
#include "sim/cost_preset.h"

namespace chasqui {

struct AblationRule {
  const char* name;
  bool PolicyRules::*rule;
};

const std::vector<AblationRule>& ablation_rules();
// Some of them by their names, separated by commas, or `all`. Errors name `field` and the names there are.
Result<std::vector<AblationRule>> find_ablation_rules(std::string_view names, const std::string& field);

// A figure without the rule over the same with it, of one load and preset; the geometric mean over the seeds.
struct AblationFigure {
  static constexpr std::size_t kFigures = 8;
  static const std::array<const char*, kFigures> names;
};

struct AblationRun {
  std::string rule;
  std::string load;
  std::string preset;
  // In the order of AblationFigure::names.
  std::array<double, AblationFigure::kFigures> with{};
  std::array<double, AblationFigure::kFigures> without{};
};

struct AblationConfig {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 3;
  std::uint64_t requests = 300;  // of each load
};

std::vector<AblationRun> ablate(const AblationConfig& config, const std::vector<AblationRule>& rules,
                                const std::vector<CostPreset>& presets);

// The loads, what each rule buys at best and in the mean, and every run.
std::string ablation_text(const std::vector<AblationRun>& runs);
std::string ablation_json(const std::vector<AblationRun>& runs);

}  // namespace chasqui
