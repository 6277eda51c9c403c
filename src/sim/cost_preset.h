// What steps cost with the models and on the machines that users have, by names such as `8b-desktop`: a model (its
// weights, its layers, its KV) times a machine (how fast it reads memory, computes, copies, and starts a pass). Where
// the figures come from stands beside each machine. Plain values, constant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sim/step_cost.h"

namespace chasqui {

struct CostPreset {
  std::string name;
  CostConfig cost;
  std::int64_t cell_bytes = 0;  // of the KV of a token, f16
  std::string source;           // of its figures: measured, scaled or estimated
};

// All of them: models from small to large, of each the machines from slow to fast.
const std::vector<CostPreset>& cost_presets();
// Errors name `field` and the names there are.
Result<CostPreset> find_cost_preset(std::string_view name, const std::string& field);
// Some of them by their names, separated by commas, or `all`.
Result<std::vector<CostPreset>> find_cost_presets(std::string_view names, const std::string& field);

}  // namespace chasqui
