// The part of LlamaWeights that loads LoRA adapters. libllama wants them before the first context of the model.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <llama.h>

#include "model/llama_runtime.h"
#include "model/llama_weights.h"

namespace chasqui {
namespace {

Error bad_adapter(const AdapterFile& file, const std::string& why) {
  return invalid_field("lora", "Cannot load the adapter " + file.path + ": " + why);
}

// FNV-1a over eight bytes at a time. It tells files apart that were made without malice, which is what they are: the
// operator names them.
Result<std::uint64_t> hash_of(const AdapterFile& file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.path.c_str(), "rb"), &std::fclose);
  if (!stream) return bad_adapter(file, std::string(std::strerror(errno)) + ".");
  std::uint64_t hash = 0xCBF29CE484222325ull;
  std::array<std::uint64_t, 8192> block{};
  for (;;) {
    block.fill(0);
    const std::size_t read = std::fread(block.data(), 1, sizeof block, stream.get());
    for (std::size_t i = 0; i < (read + 7) / 8; ++i) {
      hash = (hash ^ block[i]) * 0x100000001B3ull;
      hash ^= hash >> 32;
    }
    if (read < sizeof block) {
      if (std::ferror(stream.get()) != 0) return bad_adapter(file, std::string(std::strerror(errno)) + ".");
      return hash ^ read;
    }
  }
}

std::string meta(const llama_adapter_lora* adapter, const char* key) {
  char buffer[4096];
  const int length = llama_adapter_meta_val_str(adapter, key, buffer, sizeof buffer);
  return length < 0 ? std::string() : std::string(buffer);
}

}  // namespace

Result<void> LlamaWeights::load_adapters(const std::vector<AdapterFile>& files) {
  for (const AdapterFile& file : files) {
    const auto contents = hash_of(file);
    if (!contents) return contents.error();
    take_llama_error();
    llama_adapter_lora* adapter = llama_adapter_lora_init(model_, file.path.c_str());
    if (adapter == nullptr) {
      const std::string reason = take_llama_error();
      return bad_adapter(file, reason.empty() ? "libllama refused it." : reason + ".");
    }
    // Such an adapter works from certain words of the prompt on, not for a whole request.
    if (llama_adapter_get_alora_n_invocation_tokens(adapter) > 0) {
      return bad_adapter(file, "activated adapters (aLoRA) are not supported.");
    }
    adapters_.push_back(adapter);
    info_.adapters.push_back({file.name, file.path, file.scale, *contents, meta(adapter, "adapter.lora.task_name"),
                              meta(adapter, "adapter.lora.prompt_prefix")});
  }
  return {};
}

}  // namespace chasqui
