#include "sim/cost_preset.h"

#include <algorithm>

namespace chasqui {
namespace {

struct ModelShape {
  const char* name;
  double parameters;    // billions, that a row is multiplied with
  double weight_bytes;  // billions, Q4_0, that a pass reads
  double layers;
  double width;       // of the residual stream: what attention computes for each cell follows from it
  double cell_bytes;  // f16 keys and values of a token
};
constexpr ModelShape kModelShapes[] = {{"0.5b", 0.49, 0.35, 24, 896, 12'288},     // Qwen2 0.5 B
                                       {"1.1b", 1.10, 0.64, 22, 2048, 22'528},    // TinyLlama 1.1 B
                                       {"8b", 8.03, 4.66, 32, 4096, 131'072},     // Llama 3 8 B
                                       {"70b", 70.6, 39.97, 80, 8192, 327'680}};  // Llama 3 70 B

struct CostMachine {
  const char* name;
  double read_gb_s;      // weights, in a pass
  double decode_gflops;  // few rows in a step
  double prefill_gflops;
  double attention;  // what it takes over the larger of reading the cells' KV and computing with it
  double copy_gb_s;  // KV into host memory and back
  double launch_us;  // for a layer of each pass, whatever it computes
  const char* source;
};
constexpr CostMachine kCostMachines[] = {
    // A 0.5 B model, Q4_0, two cores with AVX-512: 30 ms for one decode row, 82 to 88 for 16, 64 rows of a prompt 239
    // ms;
    // restoring 14.8 MB took 2.8 ms, saving them 53 ms.
    {"laptop", 13.5, 256, 300, 3.5, 1.0, 0, "measured with 0.5 B on two cores with AVX-512; scaled for other models"},
    // Two channels of DDR5 (about 60 GB/s that are reached), eight cores.
    {"desktop", 60, 700, 900, 3.5, 4.0, 0,
     "estimated: the laptop's shape with four times its bandwidth, three times its cores"},
    // Eight channels of DDR5, 48 to 64 cores.
    {"server", 220, 2'500, 3'500, 3.5, 8.0, 0,
     "estimated: as the desktop, eight channels of memory, 48 cores and more"},
    // One accelerator of 80 GB: three quarters of 3.3 TB/s, a quarter of its peak in matrix products of quantized
    // weights.
    {"gpu", 2'500, 60'000, 250'000, 1.5, 20, 30,
     "estimated: one GPU of 80 GB; 30 us of launches for a layer of a pass"}};

constexpr double kMicro = 1e6;
constexpr double kGiga = 1e9;

// Rows and attention compute, passes and cells read memory.
StepCost step_cost_of(const ModelShape& model, const CostMachine& machine, double gflops) {
  StepCost cost;
  cost.pass_us = model.weight_bytes / machine.read_gb_s * kMicro;
  cost.row_us = 2 * model.parameters / gflops * kMicro;
  return cost;
}

CostPreset preset_of(const ModelShape& model, const CostMachine& machine) {
  CostPreset preset;
  preset.name = std::string(model.name) + '-' + machine.name;
  preset.source = machine.source;
  preset.cell_bytes = static_cast<std::int64_t>(model.cell_bytes);
  preset.cost.decode = step_cost_of(model, machine, machine.decode_gflops);
  preset.cost.prefill = step_cost_of(model, machine, machine.prefill_gflops);
  // A decode row reads the KV of its own sequence; rows of a prompt share what they read, and compute with it.
  const double reads = model.cell_bytes / kGiga / machine.read_gb_s * kMicro;
  const double computes = 4 * model.width * model.layers / kGiga / machine.prefill_gflops * kMicro;
  preset.cost.decode.cell_us = machine.attention * std::max(reads, computes);
  preset.cost.prefill.cell_us = machine.attention * computes;
  preset.cost.launch_us = machine.launch_us * model.layers;
  preset.cost.copy_us = model.cell_bytes / kGiga / machine.copy_gb_s * kMicro;
  return preset;
}

}  // namespace

const std::vector<CostPreset>& cost_presets() {
  static const std::vector<CostPreset> presets = [] {
    std::vector<CostPreset> all;
    for (const ModelShape& model : kModelShapes) {
      for (const CostMachine& machine : kCostMachines) all.push_back(preset_of(model, machine));
    }
    return all;
  }();
  return presets;
}

Result<CostPreset> find_cost_preset(std::string_view name, const std::string& field) {
  std::string names;
  for (const CostPreset& preset : cost_presets()) {
    if (preset.name == name) return preset;
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  return invalid_field(field, field + ": there is no '" + std::string(name) + "'; there are " + names);
}

Result<std::vector<CostPreset>> find_cost_presets(std::string_view names, const std::string& field) {
  if (names == "all") return cost_presets();
  std::vector<CostPreset> found;
  for (;;) {
    const std::size_t comma = names.find(',');
    Result<CostPreset> preset = find_cost_preset(names.substr(0, comma), field);
    if (!preset) return preset.error();
    found.push_back(std::move(*preset));
    if (comma == std::string_view::npos) return found;
    names.remove_prefix(comma + 1);
  }
}

}  // namespace chasqui
