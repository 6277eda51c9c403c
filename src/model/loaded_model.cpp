#include "model/loaded_model.h"

#include <algorithm>

#include "base/file_stamp.h"
#include "base/log.h"
#include "model/forced_voice.h"
#include "model/llama_chat_template.h"
#include "model/llama_embedder.h"
#include "model/llama_model.h"
#include "model/llama_source.h"
#include "model/llama_tokenizer.h"
#include "model/same_file.h"
#include "model/sim_media.h"
#include "model/weights_identity.h"

namespace chasqui {
namespace {

using Load = std::function<Result<WeightsPtr>(const WeightsOptions&)>;

Result<LoadedModel> load_parts(const Load& load, const LoadOptions& options) {
  Result<WeightsPtr> weights = load(options.weights);
  if (!weights) return weights.error();
  // What tokenizes has to go on while the weights are freed.
  WeightsOptions words_only = options.weights;
  words_only.vocabulary_only = true;
  words_only.progress = {};
  words_only.adapters.clear();
  Result<WeightsPtr> vocabulary = options.sleeps ? load(words_only) : weights;
  if (!vocabulary) return vocabulary.error();
  auto chat_template = LlamaChatTemplate::make(*vocabulary, options.chat_template);
  if (!chat_template) return chat_template.error();
  LoadedModel loaded;
  loaded.info = (*weights)->info();
  loaded.info.chat_template = (*chat_template)->source();
  loaded.tokenizer = std::make_shared<LlamaTokenizer>(*vocabulary);
  loaded.chat_template = std::move(*chat_template);
  loaded.sampling = std::make_shared<SamplingKit>(loaded.tokenizer, (*vocabulary)->vocab(), options.grammar_engine,
                                                  options.forced_tokens);
  WeightsOptions quietly = options.weights;
  quietly.progress = {};  // its listener is gone when they are loaded again
  quietly.adapters.clear();
  const auto again = [load, quietly] { return load(quietly); };
  const auto source = std::make_shared<LlamaSource>(again, *weights);
  loaded.load_adapter = [source](const AdapterFile& file) { return source->add_adapter(file); };
  loaded.free_adapter = [source](std::int32_t place) { source->remove_adapter(place); };
  std::shared_ptr<LlamaMediaEncoder> encoder;
  if (!options.media.path.empty()) {
    auto media = LlamaMedia::make(options.media, **weights, *vocabulary);
    if (media) {
      encoder = (*media)->encoder();
      loaded.media = std::move(*media);
    } else if (options.media.optional) {
      log_warning("the model is served without its projector", {{"reason", media.error().message}});
    } else {
      return media.error();
    }
  }
  loaded.make = [source, encoder](const ModelConfig& config) -> Result<std::unique_ptr<Model>> {
    auto shared = source->weights();
    if (!shared) return shared.error();
    ModelConfig whole = config;
    whole.media = encoder;
    auto model = LlamaModel::make(std::move(*shared), whole);
    if (!model) return model.error();
    return std::unique_ptr<Model>(std::move(*model));
  };
  loaded.make_embedder =
      [source, llama = options.weights.llama](const EmbedderWish& wish) -> Result<std::unique_ptr<Embedder>> {
    auto shared = source->weights();
    if (!shared) return shared.error();
    EmbedderConfig config{.llama = llama};
    config.pooling = wish.pooling;
    config.tokens_max = wish.tokens_max;
    config.cores = wish.cores;
    config.threads = wish.threads;
    auto embedder = LlamaEmbedder::make(std::move(*shared), config);
    if (!embedder) return embedder.error();
    return std::unique_ptr<Embedder>(std::move(*embedder));
  };
  return loaded;
}

}  // namespace

Result<LoadedModel> load_llama(const std::string& path, const LoadOptions& options) {
  std::shared_ptr<SameFile> same;  // only where the file is read again later
  if (options.sleeps) {
    auto seen = SameFile::look(path);
    if (!seen) {
      // A file that cannot be identified is mostly no model, and loading it says what is wrong with it.
      const auto weights = LlamaWeights::from_file(path, options.weights);
      return weights ? seen.error() : weights.error();
    }
    same = std::make_shared<SameFile>(std::move(*seen));
  }
  const auto load = [path, same](const WeightsOptions& how) -> Result<WeightsPtr> {
    if (same) {
      if (auto unchanged = same->check(); !unchanged) return unchanged.error();
    }
    return LlamaWeights::from_file(path, how);
  };
  const auto stamp = FileStamp::of(path);
  auto loaded = load_parts(load, options);
  if (!loaded) return loaded;
  loaded->identify = [path, stamp](const ModelConfig& config, const ModelShape& shape) -> Result<ModelIdentity> {
    const auto weights = identify_weights(path);
    if (!weights) return weights.error();
    if (FileStamp::of(path) != stamp) {
      return Error{ErrorCode::unavailable, "The model " + path + " was replaced while it was loaded; load it again.",
                   "model"};
    }
    return ModelIdentity{*weights, identify_context(config, shape)};
  };
  return loaded;
}

Result<LoadedModel> load_llama(std::span<const std::byte> gguf, const std::string& name, const LoadOptions& options) {
  const auto load = [gguf, name](const WeightsOptions& how) { return LlamaWeights::from_memory(gguf, name, how); };
  auto loaded = load_parts(load, options);
  if (!loaded) return loaded;
  loaded->identify = [gguf](const ModelConfig& config, const ModelShape& shape) -> Result<ModelIdentity> {
    return ModelIdentity{identify_weights(gguf), identify_context(config, shape)};
  };
  return loaded;
}

namespace {

// Adapters without files.
class SimAdapters {
 public:
  Result<AdapterInfo> add(const AdapterFile& file) {
    auto place = std::ranges::find(taken_, false);
    if (place == taken_.end()) {
      if (taken_.size() >= kAdaptersMax) return invalid_field("lora_name", "there are too many adapters");
      place = taken_.insert(taken_.end(), false);
    }
    *place = true;
    AdapterInfo info{file.name, file.path, file.scale, std::hash<std::string>()(file.name + '\n' + file.path), {}, {}};
    info.place = static_cast<std::int32_t>(place - taken_.begin());
    info.version = versions_++;
    info.at_run_time = file.at_run_time;
    return info;
  }
  void remove(std::int32_t place) { taken_.at(static_cast<std::size_t>(place)) = false; }

 private:
  std::vector<bool> taken_;  // by place
  std::uint32_t versions_ = 0;
};

// All but what talks.
LoadedModel simulated(const SimOptions& options, const std::vector<AdapterFile>& adapters) {
  LoadedModel loaded;
  loaded.info.name = "sim";
  loaded.info.description = "simulated, without weights";
  loaded.info.architecture = "sim";
  loaded.info.format = "none";
  loaded.info.context_trained = options.context;
  loaded.info.vocabulary_type = "sim";
  const auto there = std::make_shared<SimAdapters>();
  for (const AdapterFile& file : adapters) loaded.info.adapters.push_back(*there->add(file));
  loaded.load_adapter = [there](const AdapterFile& file) { return there->add(file); };
  loaded.free_adapter = [there](std::int32_t place) { there->remove(place); };
  loaded.identify = [seed = options.seed](const ModelConfig& config, const ModelShape& shape) -> Result<ModelIdentity> {
    const std::string weights = "sim " + std::to_string(seed);
    return ModelIdentity{checksum(std::as_bytes(std::span(weights))), identify_context(config, shape)};
  };
  return loaded;
}

}  // namespace

LoadedModel load_sim(const SimOptions& options, const std::vector<AdapterFile>& adapters) {
  LoadedModel loaded = simulated(options, adapters);
  auto tokenizer = std::make_shared<SimTokenizer>();
  loaded.info.vocabulary = tokenizer->vocabulary();
  loaded.info.eos = SimTokenizer::kImEnd;
  loaded.info.eos_text = tokenizer->special_piece(SimTokenizer::kImEnd);
  loaded.tokenizer = tokenizer;
  loaded.media = std::make_shared<SimMedia>(tokenizer);
  loaded.sampling = std::make_shared<SamplingKit>(tokenizer, nullptr);
  loaded.chat_template = std::make_shared<SimChatTemplate>();
  loaded.info.chat_template = loaded.chat_template->source();
  loaded.make = [tokenizer, options](const ModelConfig& config) -> Result<std::unique_ptr<Model>> {
    return std::unique_ptr<Model>(std::make_unique<SimModel>(tokenizer, config, options));
  };
  return loaded;
}

Result<LoadedModel> load_forced_sim(std::span<const std::byte> gguf, const LoadOptions& load,
                                    const SimOptions& options) {
  WeightsOptions words_only;
  words_only.vocabulary_only = true;
  auto vocabulary = LlamaWeights::from_memory(gguf, "sim", words_only);
  if (!vocabulary) return vocabulary.error();
  auto chat_template = LlamaChatTemplate::make(*vocabulary, load.chat_template);
  if (!chat_template) return chat_template.error();
  LoadedModel loaded = simulated(options, load.weights.adapters);
  const ModelInfo& real = (*vocabulary)->info();
  loaded.info.vocabulary_type = real.vocabulary_type;
  loaded.info.vocabulary = real.vocabulary;
  loaded.info.bos = real.bos;
  loaded.info.bos_text = real.bos_text;
  loaded.info.eos = real.eos;
  loaded.info.eos_text = real.eos_text;
  loaded.info.adds_bos = real.adds_bos;
  const auto tokenizer = std::make_shared<LlamaTokenizer>(*vocabulary);
  loaded.tokenizer = tokenizer;
  loaded.sampling =
      std::make_shared<SamplingKit>(tokenizer, (*vocabulary)->vocab(), load.grammar_engine, load.forced_tokens);
  loaded.chat_template = std::move(*chat_template);
  loaded.info.chat_template = loaded.chat_template->source();
  const auto voice = std::make_shared<ForcedVoice>(tokenizer);
  loaded.make = [voice, size = tokenizer->vocabulary(),
                 options](const ModelConfig& config) -> Result<std::unique_ptr<Model>> {
    return std::unique_ptr<Model>(std::make_unique<SimModel>(size, voice, config, options));
  };
  return loaded;
}

}  // namespace chasqui
