// What a GGUF file says of itself, read from its head alone: no tensor is loaded, no context made. For `chasqui
// inspect` and `doctor`, on files of strangers: whatever is in them, the result is a summary or an error. A plain
// value; any thread; reads the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/error.h"
#include "core/types.h"

namespace chasqui {

struct GgufSummary {
  std::string name;          // general.name, empty when it is not said
  std::string architecture;  // "llama", "qwen2" …
  std::string kind;          // general.type: "model", "adapter" …; "model" when it is not said
  std::string adapter;       // of an adapter: "lora" …
  std::uint64_t file_bytes = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::map<std::string, std::uint64_t> formats;  // bytes of tensors by their format: "Q4_0", "F32" …

  std::int64_t layers = 0;
  std::int64_t embedding_length = 0;
  std::int64_t heads = 0;
  std::int64_t context_trained = 0;
  std::int64_t sliding_window = 0;  // 0: none
  std::int64_t window_layers = 0;   // that see no more than that
  std::int64_t experts = 0;         // 0: dense
  std::int64_t experts_used = 0;
  // Sums over all layers of what one position of the KV cache holds.
  std::uint64_t key_values_per_cell = 0;
  std::uint64_t value_values_per_cell = 0;
  bool recurrent = false;                  // some layers keep a state instead of positions
  bool hybrid = false;                     // … and others attend
  std::int64_t state_layers = 0;           // where there are some: all, or those that do not attend
  std::uint64_t state_bytes_per_slot = 0;  // of the recurrent layers, about

  std::string vocabulary_type;  // as the file has it: "llama", "gpt2" …
  std::uint64_t vocabulary = 0;
  std::string chat_template;

  std::string main_format() const;  // that of most bytes
  bool trims_anywhere() const { return !recurrent; }
};

// Errors name what is wrong with the file, which may be cut short anywhere.
Result<GgufSummary> summarize_gguf(const std::string& path);
Result<GgufSummary> summarize_gguf(std::span<const std::byte> gguf);

}  // namespace chasqui
