// Which device has which part of a model: forecast from the flags by libllama's rule, and as libllama has it once a
// context is there. Start-up and loading threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/llama_options.h"
#include "model/llama_rpc.h"

struct llama_context;

namespace chasqui {

// Layers that follow each other on one device; the last one of all is the output.
struct LayerRange {
  std::string device;
  std::int32_t first = 0;
  std::int32_t last = 0;
};
// Of a model with so many layers and the output behind them. What --override-tensor names may be elsewhere. Empty: the
// flags split tensors, not layers. `remote`: devices whose memory is not asked for again.
std::vector<LayerRange> forecast_layers(const LlamaOptionsPtr& options, std::int32_t gpu_layers, std::int32_t layers,
                                        std::span<const RpcDevice> remote);

// A line of the log for each device that has a part, where there are several.
void log_places(const llama_context* context);

}  // namespace chasqui
