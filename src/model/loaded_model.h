// Everything that the layers above need of a model, whatever engine computes it: chosen by a flag in app, passed on by
// value. The shared parts are const and thread-safe; make() is called once per worker, at start.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "model/chat_template.h"
#include "model/llama_weights.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/model_info.h"
#include "model/sampling_kit.h"
#include "model/sim_model.h"
#include "model/tokenizer.h"

namespace chasqui {

struct LoadedModel {
  ModelInfo info;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  std::shared_ptr<SamplingKit> sampling;
  std::function<Result<std::unique_ptr<Model>>(const ModelConfig&)> make;  // one context
};

struct LoadOptions {
  WeightsOptions weights;
  std::string chat_template;  // source that replaces the model's own
};

// Starts libllama's runtime first.
Result<LoadedModel> load_llama(const std::string& path, const LoadOptions& options = {});
Result<LoadedModel> load_llama(std::span<const std::byte> gguf, const std::string& name,
                               const LoadOptions& options = {});
LoadedModel load_sim(const SimOptions& options = {});

}  // namespace chasqui
