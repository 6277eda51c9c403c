// Everything that the layers above need of a model, whatever engine computes it: chosen by a flag in app, passed on by
// value. The shared parts are const and thread-safe; make() is called once per worker, at start.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/model_identity.h"
#include "model/chat_template.h"
#include "model/embedder.h"
#include "model/llama_media.h"
#include "model/llama_sampling_kit.h"
#include "model/llama_weights.h"
#include "model/media_reader.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/model_info.h"
#include "model/sim_model.h"
#include "model/tokenizer.h"

namespace chasqui {

struct LoadedModel {
  ModelInfo info;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  std::shared_ptr<SamplingKit> sampling;
  std::shared_ptr<const MediaReader> media;                                // null: the model reads text alone
  std::function<Result<std::unique_ptr<Model>>(const ModelConfig&)> make;  // one context
  // On the thread that is to use it; empty where the engine has none.
  std::function<Result<std::unique_ptr<Embedder>>(const EmbedderWish&)> make_embedder;
  // What snapshots of such a context belong to. Reads the file once more.
  std::function<Result<ModelIdentity>(const ModelConfig&, const ModelShape&)> identify;
  // LoRA adapters come and go while contexts compute with others. Both wait for the disk, and for contexts that begin
  // with an adapter; one call at a time. Errors: unavailable while the weights are not in memory; what is wrong with
  // the file; too many adapters.
  std::function<Result<AdapterInfo>(const AdapterFile&)> load_adapter;
  // The one in this place. REQUIRES: no set with it is used any more
  std::function<void(std::int32_t)> free_adapter;
};

struct LoadOptions {
  WeightsOptions weights;
  bool sleeps = false;        // the weights can be freed while what does without them goes on
  std::string chat_template;  // source that replaces the model's own
  MediaOptions media;
  GrammarEngine grammar_engine = GrammarEngine::chasqui;
  bool forced_tokens = true;  // what a grammar leaves no choice about is not sampled
};

// Starts libllama's runtime first.
Result<LoadedModel> load_llama(const std::string& path, const LoadOptions& options = {});
// `gguf` outlives what is returned.
Result<LoadedModel> load_llama(std::span<const std::byte> gguf, const std::string& name,
                               const LoadOptions& options = {});
// Adapters change what it says; their files are not read.
LoadedModel load_sim(const SimOptions& options = {}, const std::vector<AdapterFile>& adapters = {});
// With the vocabulary of a real model and its template, or that of `load`: it says what prompts tell it
// (model/forced_voice.h). `gguf` outlives what is returned.
Result<LoadedModel> load_forced_sim(std::span<const std::byte> gguf, const LoadOptions& load,
                                    const SimOptions& options);

}  // namespace chasqui
