// The part of LlamaWeights that has LoRA adapters.
#include <llama.h>

#include "model/llama_runtime.h"
#include "model/llama_weights.h"

namespace chasqui {
namespace {

Error misfit(const AdapterInfo& info, const std::string& why) { return bad_adapter(info.name, info.path, why); }

std::string meta(const llama_adapter_lora* adapter, const char* key) {
  char buffer[4096];
  const int length = llama_adapter_meta_val_str(adapter, key, buffer, sizeof buffer);
  return length < 0 ? std::string() : std::string(buffer);
}

}  // namespace

// One thread at a time.
Result<void> LlamaWeights::attach(OpenAdapter& adapter) const {
  AdapterInfo& info = adapter.info;
  auto& place = adapters_.at(static_cast<std::size_t>(info.place));
  std::rewind(adapter.stream.get());
  take_llama_error();
  llama_adapter_lora* loaded = nullptr;
  {
    const SharedLock::Writing writing(adapters_lock_);
    loaded = llama_adapter_lora_init_from_file_ptr(model_, adapter.stream.get());
  }
  if (loaded == nullptr) {
    const std::string reason = take_llama_error();
    return misfit(info, reason.empty() ? "libllama refused it." : reason + ".");
  }
  // Such an adapter works from certain words of the prompt on, not for a whole request.
  if (llama_adapter_get_alora_n_invocation_tokens(loaded) > 0) {
    const SharedLock::Writing writing(adapters_lock_);
    llama_adapter_lora_free(loaded);
    return misfit(info, "activated adapters (aLoRA) are not supported.");
  }
  info.task_name = meta(loaded, "adapter.lora.task_name");
  info.prompt_prefix = meta(loaded, "adapter.lora.prompt_prefix");
  place.store(loaded, std::memory_order_release);
  return {};
}

void LlamaWeights::detach(std::int32_t place) const {
  llama_adapter_lora* const adapter =
      adapters_.at(static_cast<std::size_t>(place)).exchange(nullptr, std::memory_order_acquire);
  if (adapter == nullptr) return;
  const SharedLock::Writing writing(adapters_lock_);
  llama_adapter_lora_free(adapter);
}

Result<void> LlamaWeights::load_adapters(const std::vector<AdapterFile>& files) {
  if (files.size() > kAdaptersMax) {
    return invalid_field("lora", "A model has at most " + std::to_string(kAdaptersMax) + " adapters, not " +
                                     std::to_string(files.size()) + ".");
  }
  for (const AdapterFile& file : files) {
    auto adapter = open_adapter(file);
    if (!adapter) return adapter.error();
    adapter->info.place = static_cast<std::int32_t>(opened_.size());
    if (auto attached = attach(*adapter); !attached) return attached.error();
    info_.adapters.push_back(adapter->info);
    opened_.push_back(std::move(*adapter));
  }
  return {};
}

llama_context* LlamaWeights::make_context(const llama_context_params& params) const {
  const SharedLock::Reading reading(adapters_lock_);
  return llama_init_from_model(model_, params);
}

bool LlamaWeights::set_adapters(llama_context* context, std::span<const AdapterUse> uses) const {
  std::vector<llama_adapter_lora*> loaded;
  std::vector<float> scales;
  for (const AdapterUse& use : uses) {
    loaded.push_back(adapters_.at(static_cast<std::size_t>(use.adapter)).load(std::memory_order_acquire));
    scales.push_back(use.scale);
    if (loaded.back() == nullptr) return false;
  }
  // One that has gone meanwhile may have been where a new one is: libllama would take them for the same.
  llama_set_adapters_lora(context, nullptr, 0, nullptr);
  llama_set_adapters_lora(context, loaded.data(), loaded.size(), scales.data());
  return true;
}

}  // namespace chasqui
