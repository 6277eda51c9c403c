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

// Of the GPUs of this machine that have a part of it, on the PCI bus ("0000:c1:00.0"), as far as their backends tell:
// CUDA and Vulkan do. Where the flags split tensors, of all that the model may use.
std::vector<std::string> gpu_addresses(const llama_context* context, const LlamaOptionsPtr& options);
// … of what ggml calls the device, which has more to it where one GPU is several devices. Empty: none is known.
std::string bus_address(const char* device_id);

// A line of the log for each device that has a part, where there are several.
void log_places(const llama_context* context);

}  // namespace chasqui
