// The weights and the vocabulary of one GGUF model: loaded once, then constant and shared by every context, tokenizer
// and chat template made from it. Any thread after loading. Loading blocks for seconds: at start, never on the loop.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "base/shared_lock.h"
#include "core/adapter_set.h"
#include "model/adapter_file.h"
#include "model/llama_options.h"
#include "model/model_info.h"

struct llama_adapter_lora;
struct llama_context;
struct llama_context_params;
struct llama_model;
struct llama_vocab;

namespace chasqui {

struct GgufSummary;

inline constexpr std::size_t kAdaptersMax = kSizeLimit<"adapters">;

struct WeightsOptions {
  std::int32_t gpu_layers = -1;       // layers to put on a GPU, if there is one; -1: all
  bool mmap = true;                   // map the file instead of reading it; shared between processes
  bool mlock = false;                 // and keep it from being paged out
  bool vocabulary_only = false;       // no tensors: good for tokenizers and templates
  bool heads = false;                 // with draft heads (MTP), or nothing but them (EAGLE-3)
  std::vector<AdapterFile> adapters;  // their names are unique
  LlamaOptionsPtr llama;              // llama-server's flags for weights; null: libllama's defaults
  bool draft = false;                 // a draft model: tensors are placed by the flags for such
  bool on_trial = false;              // on no device, mapped and as it is, whatever else was asked for
  // Called with 0 … 1 on the loading thread; false stops loading.
  std::function<bool(double)> progress;
  // Called there, too, each time that they are loaded: before, where an error keeps them from it, and after.
  std::function<Result<void>()> before;
  std::function<void()> after;
};

class LlamaWeights {
 public:
  // Errors are `invalid_request` when the file is at fault (missing, not GGUF, cut short, unknown architecture), with
  // a message that names it. The first of several split files stands for all.
  static Result<std::shared_ptr<const LlamaWeights>> from_file(const std::string& path,
                                                               const WeightsOptions& options = {});

  // A model that is in memory already, such as the one inside the binary. The bytes are copied into an anonymous file.
  static Result<std::shared_ptr<const LlamaWeights>> from_memory(std::span<const std::byte> gguf, std::string name,
                                                                 const WeightsOptions& options = {});

  ~LlamaWeights();
  LlamaWeights(const LlamaWeights&) = delete;
  LlamaWeights& operator=(const LlamaWeights&) = delete;

  const ModelInfo& info() const { return info_; }

  // For the other files that wrap libllama. Its functions take a mutable model and do not change it, but for the set of
  // its adapters: contexts are made by make_context().
  llama_model* model() const { return model_; }
  // Null where libllama makes none.
  llama_context* make_context(const llama_context_params& params) const;
  const llama_vocab* vocab() const;
  // What the context computes with from its next decode on, for which libllama makes its graphs anew. False: one of
  // them could not be loaded again after a sleep, and nothing has changed. REQUIRES: they are loaded, and stay so
  bool set_adapters(llama_context* context, std::span<const AdapterUse> uses) const;
  // Adapters come and go while contexts compute with others. One thread at a time, which waits for those that hold
  // adapters_lock(). Errors of attach(): it does not fit the model.
  Result<void> attach(OpenAdapter& adapter) const;
  // REQUIRES: no set with the adapter in this place is used any more
  void detach(std::int32_t place) const;
  // Of libllama's set of them, which a context counts in its first decode, and in the first one after a change of what
  // it computes with: read there, written where an adapter comes or goes (docs/decisions/adapter_lock.md).
  SharedLock& adapters_lock() const { return adapters_lock_; }
  // Those that were loaded with it.
  const std::vector<OpenAdapter>& opened() const { return opened_; }

 private:
  LlamaWeights(llama_model* model, ModelInfo info, LlamaOptionsPtr options)
      : model_(model), options_(std::move(options)), info_(std::move(info)) {}
  static Result<std::shared_ptr<const LlamaWeights>> adopt(llama_model* model, std::string path, std::string name,
                                                           const GgufSummary& file, const WeightsOptions& options);
  Result<void> load_adapters(const std::vector<AdapterFile>& files);

  llama_model* const model_;
  const LlamaOptionsPtr options_;    // libllama points into them
  ModelInfo info_;                   // constant after loading
  std::vector<OpenAdapter> opened_;  // likewise
  mutable SharedLock adapters_lock_;
  mutable std::array<std::atomic<llama_adapter_lora*>, kAdaptersMax> adapters_{};  // by place; freed with the model
};
using WeightsPtr = std::shared_ptr<const LlamaWeights>;

}  // namespace chasqui
