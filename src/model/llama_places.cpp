#include "model/llama_places.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <common.h>
#include <ggml-backend.h>
#include <llama-ext.h>
#include <llama.h>

#include "base/log.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

// In libllama's order: other machines, GPUs, and chips that share the CPU's memory where there are no others.
std::vector<ggml_backend_dev_t> devices_of(const common_params& params) {
  std::vector<ggml_backend_dev_t> out;
  for (ggml_backend_dev_t device : params.devices) {
    if (device != nullptr) out.push_back(device);
  }
  if (!params.devices.empty()) return out;
  const auto add = [&out](enum ggml_backend_dev_type type, bool remote) {
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
      ggml_backend_dev_t device = ggml_backend_dev_get(i);
      const std::string_view of = ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
      if (ggml_backend_dev_type(device) == type && (of == "RPC") == remote) out.push_back(device);
    }
  };
  add(GGML_BACKEND_DEVICE_TYPE_GPU, true);
  const std::size_t others = out.size();
  add(GGML_BACKEND_DEVICE_TYPE_GPU, false);
  if (out.size() == others) add(GGML_BACKEND_DEVICE_TYPE_IGPU, false);
  return out;
}

void add_address(ggml_backend_dev_t device, std::vector<std::string>& out) {
  const std::string_view backend = ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
  if (backend == "RPC") return;  // of another machine, which would be asked
  ggml_backend_dev_props props{};
  ggml_backend_dev_get_props(device, &props);
  std::string address = bus_address(props.device_id);
  if (address.empty() || std::ranges::find(out, address) != out.end()) return;
  out.push_back(std::move(address));
}

float free_bytes_of(ggml_backend_dev_t device, std::span<const RpcDevice> remote) {
  const auto known = std::ranges::find(remote, ggml_backend_dev_name(device), &RpcDevice::name);
  if (known != remote.end()) return static_cast<float>(known->free_bytes);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ggml_backend_dev_memory(device, &free_bytes, &total_bytes);
  return static_cast<float>(free_bytes);
}

// Where the part of each device ends, of all that is not on the CPU; the last is 1.
std::vector<float> ends_of(const std::vector<ggml_backend_dev_t>& devices, const common_params& params,
                           std::span<const RpcDevice> remote) {
  std::vector<float> ends;
  float sum = 0;
  const bool said = std::any_of(params.tensor_split, params.tensor_split + devices.size(),
                                [](float share) { return share != 0; });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    sum += said ? params.tensor_split[i] : free_bytes_of(devices[i], remote);
    ends.push_back(sum);
  }
  for (float& end : ends) end /= sum;
  return ends;
}

}  // namespace

std::vector<LayerRange> forecast_layers(const LlamaOptionsPtr& options, std::int32_t gpu_layers, std::int32_t layers,
                                        std::span<const RpcDevice> remote) {
  const common_params none{};
  const common_params& params = options ? options->params() : none;
  std::vector<ggml_backend_dev_t> devices = devices_of(params);
  if (params.split_mode == LLAMA_SPLIT_MODE_NONE && !devices.empty()) {
    const auto one = static_cast<std::size_t>(std::max(params.main_gpu, 0));
    if (params.main_gpu < 0) devices.clear();
    if (one < devices.size()) devices = {devices[one]};
  } else if (params.split_mode != LLAMA_SPLIT_MODE_LAYER) {
    return {};
  }
  const std::vector<float> ends = ends_of(devices, params, remote);
  const std::int32_t all = layers + 1;
  const std::int32_t away = devices.empty() ? 0 : gpu_layers < 0 ? all : std::min(gpu_layers, all);
  std::vector<LayerRange> out;
  for (std::int32_t layer = 0; layer < all; ++layer) {
    std::string device = "CPU";
    if (const std::int32_t place = layer - (all - away); place >= 0) {
      const float share = static_cast<float>(place) / static_cast<float>(away);
      const auto at = std::upper_bound(ends.begin(), ends.end(), share) - ends.begin();
      device = ggml_backend_dev_name(devices[std::min(static_cast<std::size_t>(at), devices.size() - 1)]);
    }
    if (out.empty() || out.back().device != device) out.push_back({std::move(device), layer, layer});
    out.back().last = layer;
  }
  return out;
}

std::string bus_address(const char* device_id) {
  const std::string_view id = device_id != nullptr ? device_id : "";
  return std::string(id.substr(0, id.find('-')));
}

std::vector<std::string> gpu_addresses(const llama_context* context, const LlamaOptionsPtr& options) {
  std::vector<std::string> out;
  if (!offloads_to_gpu()) return out;
  const common_params none{};
  const common_params& params = options ? options->params() : none;
  if (params.split_mode != LLAMA_SPLIT_MODE_NONE && params.split_mode != LLAMA_SPLIT_MODE_LAYER) {
    for (ggml_backend_dev_t device : devices_of(params)) add_address(device, out);
    return out;
  }
  for (const auto& [type, bytes] : llama_get_memory_breakdown(context)) {
    ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    if (device == nullptr || ggml_backend_buft_is_host(type) || bytes.model + bytes.context + bytes.compute == 0)
      continue;
    add_address(device, out);
  }
  return out;
}

void log_places(const llama_context* context) {
  if (!offloads_to_gpu()) return;
  std::map<std::string, llama_memory_breakdown_data> parts;
  for (const auto& [type, bytes] : llama_get_memory_breakdown(context)) {
    ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    const bool here = ggml_backend_buft_is_host(type) || device == nullptr ||
                      ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
    std::string name = here ? "CPU" : ggml_backend_dev_name(device);
    if (!here) name += std::string(" (") + ggml_backend_dev_description(device) + ')';
    llama_memory_breakdown_data& part = parts[name];
    part.model += bytes.model;
    part.context += bytes.context;
    part.compute += bytes.compute;
  }
  const auto mib = [](std::size_t bytes) { return static_cast<std::int64_t>((bytes + (1 << 20) - 1) >> 20); };
  for (const auto& [name, part] : parts) {
    log_info("a device has a part of the model", {{"device", name},
                                                  {"weights_mib", mib(part.model)},
                                                  {"kv_mib", mib(part.context)},
                                                  {"buffers_mib", mib(part.compute)}});
  }
}

}  // namespace chasqui
