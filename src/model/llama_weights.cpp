#include "model/llama_weights.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <llama.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/log.h"
#include "core/sampling.h"
#include "model/gguf_summary.h"
#include "model/llama_params.h"
#include "model/llama_runtime.h"
#include "model/window_layers.h"

namespace chasqui {
namespace {

constexpr std::size_t kHeaderBytes = 24;  // magic, version, numbers of tensors and of keys

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

Error bad_model(const std::string& name, const std::string& why) {
  return invalid_field("model", "Cannot load the model " + name + ": " + why);
}

std::string system_message() { return std::strerror(errno); }

// What can be said better before libllama sees the file than after.
Result<GgufSummary> check_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return bad_model(path, system_message() + ".");
  if (S_ISDIR(status.st_mode)) return bad_model(path, "it is a folder; name the .gguf file in it.");
  if (!S_ISREG(status.st_mode)) return bad_model(path, "it is not a regular file.");
  if (static_cast<std::size_t>(status.st_size) < kHeaderBytes) return bad_model(path, "it is too short to be a model.");
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return bad_model(path, system_message() + ".");
  char magic[4];
  if (std::fread(magic, 1, sizeof magic, file.get()) != sizeof magic) return bad_model(path, system_message() + ".");
  if (std::memcmp(magic, "GGUF", sizeof magic) != 0) return bad_model(path, "it is not a GGUF file.");
  // Sizes and offsets of everything in its head, held against the file.
  auto summary = summarize_gguf(path);
  if (summary) return summary;
  const std::string& why = summary.error().message;
  return bad_model(path, why.starts_with(path + ": ") ? why.substr(path.size() + 2) : why);
}

// Passes progress on and remembers whether the caller stopped the loading.
struct Loading {
  const WeightsOptions& options;
  bool stopped = false;

  static bool on_progress(float done, void* self) {
    auto& loading = *static_cast<Loading*>(self);
    const auto& hook = loading.options.progress;
    loading.stopped = hook && !hook(static_cast<double>(done));
    return !loading.stopped;
  }

  Error failed(const std::string& name) const {
    if (stopped) return bad_model(name, "loading was stopped.");
    const std::string reason = take_llama_error();
    return bad_model(name, reason.empty() ? "libllama refused it." : reason + ".");
  }
};

llama_model_params model_params(Loading& loading) {
  const WeightsOptions& options = loading.options;
  llama_model_params params = first_model_params(options.llama, options.draft);
  params.n_gpu_layers = options.draft ? draft_gpu_layers(options.llama, options.gpu_layers) : options.gpu_layers;
  // --load-mode has more to say than our flags, and wins.
  if (!options.llama || params.load_mode == LLAMA_LOAD_MODE_AUTO) {
    const auto locked = [&options](llama_load_mode with, llama_load_mode without) {
      return options.mlock ? with : without;
    };
    params.load_mode = options.mmap ? locked(LLAMA_LOAD_MODE_MMAP_MLOCK, LLAMA_LOAD_MODE_MMAP)
                                    : locked(LLAMA_LOAD_MODE_MLOCK, LLAMA_LOAD_MODE_NONE);
  }
  static ggml_backend_dev_t no_device[] = {nullptr};
  if (options.on_trial || options.vocabulary_only) params.devices = no_device;
  if (options.on_trial) {
    params.n_gpu_layers = 0;
    params.tensor_buft_overrides = nullptr;
    params.use_extra_bufts = false;
    params.load_mode = LLAMA_LOAD_MODE_MMAP;
  }
  params.vocab_only = options.vocabulary_only;
  params.load_mtp = options.heads;
  params.progress_callback = Loading::on_progress;
  params.progress_callback_user_data = &loading;
  return params;
}

Result<void> before_loading(const WeightsOptions& options) {
  return options.before && !options.vocabulary_only ? options.before() : Result<void>();
}

// A file that has no name, so that nothing is left behind whatever happens.
File anonymous_file() {
#ifdef __linux__
  const int fd = ::memfd_create("chasqui-model", MFD_CLOEXEC);
  if (fd >= 0) return File(::fdopen(fd, "w+b"));
#endif
  return File(std::tmpfile());
}

// What the file says of itself, but for what --override-kv says instead.
struct Metadata {
  const llama_model* model;
  const LlamaOptionsPtr& options;

  std::string text(const std::string& key) const {
    if (auto other = overridden(options, key)) return *other;
    char buffer[1024];
    const int length = llama_model_meta_val_str(model, key.c_str(), buffer, sizeof buffer);
    return length < 0 ? std::string() : std::string(buffer);
  }
  std::optional<float> number(llama_model_meta_key key) const {
    const std::string said = text(llama_model_meta_key_str(key));
    char* end = nullptr;
    const float value = std::strtof(said.c_str(), &end);
    return said.empty() || *end != '\0' ? std::nullopt : std::optional(value);
  }
  std::optional<std::int32_t> integer(llama_model_meta_key key) const {
    const std::optional<float> value = number(key);
    constexpr float kEnd = 2147483648.0f;  // NaN is not within, either
    const bool whole = value && *value >= -kEnd && *value < kEnd;
    return whole ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
  }
};

const char* vocabulary_type(const llama_vocab* vocab) {
  switch (llama_vocab_type(vocab)) {
    case LLAMA_VOCAB_TYPE_NONE: return "none";
    case LLAMA_VOCAB_TYPE_SPM: return "SPM";
    case LLAMA_VOCAB_TYPE_BPE: return "BPE";
    case LLAMA_VOCAB_TYPE_WPM: return "WPM";
    case LLAMA_VOCAB_TYPE_UGM: return "UGM";
    case LLAMA_VOCAB_TYPE_RWKV: return "RWKV";
    case LLAMA_VOCAB_TYPE_PLAMO2: return "PLaMo2";
    default: return "other";
  }
}

void describe_vocabulary(const llama_vocab* vocab, ModelInfo& info) {
  info.vocabulary_type = vocabulary_type(vocab);
  info.vocabulary = llama_vocab_n_tokens(vocab);
  info.bos = llama_vocab_bos(vocab);
  info.eos = llama_vocab_eos(vocab);
  info.infill = {llama_vocab_fim_pre(vocab), llama_vocab_fim_suf(vocab), llama_vocab_fim_mid(vocab),
                 llama_vocab_fim_rep(vocab), llama_vocab_fim_sep(vocab)};
  if (info.bos >= 0) info.bos_text = llama_vocab_get_text(vocab, info.bos);
  if (info.eos >= 0) info.eos_text = llama_vocab_get_text(vocab, info.eos);
  info.adds_bos = llama_vocab_get_add_bos(vocab);
  info.adds_eos = llama_vocab_get_add_eos(vocab);
  if (llama_vocab_get_add_sep(vocab)) info.separator = llama_vocab_sep(vocab);
}

// Requests that do not say another value would all be refused for it.
template <class Value>
void drop_outside(std::optional<Value>& value, Value SamplingParams::*member) {
  if (!value) return;
  SamplingParams params;
  params.*member = *value;
  for (const SamplingRule& rule : sampling_rules()) {
    const double read = rule.read(params);
    if (read >= rule.minimum && read <= rule.maximum) continue;
    log_warning("the model file recommends what is no value of this field, which is left out",
                {{"field", rule.field}, {"value", read}});
    return value.reset();
  }
}

RecommendedSampling recommended_sampling(const Metadata& meta) {
  RecommendedSampling sampling;
  sampling.temperature = meta.number(LLAMA_MODEL_META_KEY_SAMPLING_TEMP);
  sampling.top_k = meta.integer(LLAMA_MODEL_META_KEY_SAMPLING_TOP_K);
  sampling.top_p = meta.number(LLAMA_MODEL_META_KEY_SAMPLING_TOP_P);
  sampling.min_p = meta.number(LLAMA_MODEL_META_KEY_SAMPLING_MIN_P);
  sampling.repeat_last_n = meta.integer(LLAMA_MODEL_META_KEY_SAMPLING_PENALTY_LAST_N);
  sampling.repeat_penalty = meta.number(LLAMA_MODEL_META_KEY_SAMPLING_PENALTY_REPEAT);
  drop_outside(sampling.temperature, &SamplingParams::temperature);
  drop_outside(sampling.top_k, &SamplingParams::top_k);
  drop_outside(sampling.top_p, &SamplingParams::top_p);
  drop_outside(sampling.min_p, &SamplingParams::min_p);
  drop_outside(sampling.repeat_last_n, &SamplingParams::repeat_last_n);
  drop_outside(sampling.repeat_penalty, &SamplingParams::repeat_penalty);
  return sampling;
}

std::optional<Pooling> pooling_of(const Metadata& meta, const std::string& architecture) {
  const std::string text = meta.text(architecture + ".pooling_type");
  if (text.size() != 1 || text[0] < '0' || text[0] > '4') return std::nullopt;
  constexpr Pooling kByNumber[] = {Pooling::none, Pooling::mean, Pooling::cls, Pooling::last, Pooling::rank};
  return kByNumber[text[0] - '0'];
}

// 494033024 is "494 M", 1100048384 is "1.1 B".
std::string count_in_words(std::uint64_t count) {
  const bool billions = count >= 1'000'000'000;
  const double shown = static_cast<double>(count) / (billions ? 1e9 : 1e6);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, shown < 10 ? "%.1f %c" : "%.0f %c", shown, billions ? 'B' : 'M');
  return buffer;
}

ModelInfo describe(const Metadata& meta, std::string path, std::string name) {
  const llama_model* model = meta.model;
  ModelInfo info;
  info.path = std::move(path);
  info.name = meta.text("general.name");
  if (info.name.empty()) info.name = std::move(name);
  info.architecture = meta.text("general.architecture");
  info.format = llama_ftype_name(llama_model_ftype(model));
  info.parameters = llama_model_n_params(model);
  info.description = info.architecture + ", " + count_in_words(info.parameters) + " parameters, " + info.format;
  info.size_bytes = llama_model_size(model);
  const std::string rope = info.architecture + ".rope.scaling.";
  info.rope_context = std::atoi(meta.text(rope + "original_context_length").c_str());
  info.context_trained = usable_context(meta.options, model, meta.text(rope + "type"), info.rope_context);
  info.embedding_length = llama_model_n_embd(model);
  info.layers = llama_model_n_layer(model);
  // Head size times KV heads, twice (keys and values), two bytes each; models with other head sizes are close enough
  // for the choice of a default.
  if (const auto heads = llama_model_n_head(model); heads > 0) {
    info.kv_bytes_per_cell = static_cast<std::uint64_t>(info.layers) * static_cast<unsigned>(info.embedding_length) *
                             static_cast<unsigned>(llama_model_n_head_kv(model)) / static_cast<unsigned>(heads) * 4;
  }
  describe_vocabulary(llama_model_get_vocab(model), info);
  if (const char* source = llama_model_chat_template(model, nullptr)) info.chat_template = source;
  info.recurrent = llama_model_is_recurrent(model);
  info.hybrid = llama_model_is_hybrid(model);
  info.sliding_window = llama_model_n_swa(model);
  if (info.sliding_window > 0) {
    const std::string every = meta.text(info.architecture + ".attention.sliding_window_pattern");
    const bool said = !every.empty() && every.find_first_not_of("0123456789") == std::string::npos && every.size() < 6;
    info.window_layers = window_layers(info.architecture, info.layers,
                                       said ? std::optional(std::int64_t{std::stoi(every)}) : std::nullopt);
  }
  info.encoder = llama_model_has_encoder(model);
  info.generates = meta.text(info.architecture + ".attention.causal") != "false";
  info.heads = std::atoi(meta.text(info.architecture + ".nextn_predict_layers").c_str());
  info.pooling = pooling_of(meta, info.architecture);
  info.ranks = info.pooling == Pooling::rank;
  if (const char* source = llama_model_chat_template(model, "rerank")) info.rank_template = source;
  info.sampling = recommended_sampling(meta);
  return info;
}

}  // namespace

Result<WeightsPtr> LlamaWeights::from_file(const std::string& path, const WeightsOptions& options) {
  if (auto started = start_llama_runtime(); !started) return started.error();
  start_numa(options.llama);
  const auto file = check_file(path);
  if (!file) return file.error();
  if (auto ready = before_loading(options); !ready) return ready.error();
  take_llama_error();
  Loading loading{options};
  llama_model* model = llama_model_load_from_file(path.c_str(), model_params(loading));
  if (model == nullptr) return loading.failed(path);
  return adopt(model, path, std::filesystem::path(path).stem().string(), *file, options);
}

Result<WeightsPtr> LlamaWeights::from_memory(std::span<const std::byte> gguf, std::string name,
                                             const WeightsOptions& options) {
  if (auto started = start_llama_runtime(); !started) return started.error();
  start_numa(options.llama);
  const File file = anonymous_file();
  if (!file) return bad_model(name, "no anonymous file: " + system_message() + ".");
  const bool written =
      std::fwrite(gguf.data(), 1, gguf.size(), file.get()) == gguf.size() && std::fflush(file.get()) == 0;
  if (!written) return bad_model(name, "no room for a copy of it: " + system_message() + ".");
  std::rewind(file.get());
  if (auto ready = before_loading(options); !ready) return ready.error();
  take_llama_error();
  Loading loading{options};
  llama_model* model = llama_model_load_from_file_ptr(file.get(), model_params(loading));
  if (model == nullptr) return loading.failed(name);
  const auto summary = summarize_gguf(gguf);
  return adopt(model, {}, std::move(name), summary ? *summary : GgufSummary(), options);
}

Result<WeightsPtr> LlamaWeights::adopt(llama_model* model, std::string path, std::string name, const GgufSummary& file,
                                       const WeightsOptions& options) {
  if (options.vocabulary_only) {
    ModelInfo info;
    info.path = std::move(path);
    info.name = std::move(name);
    describe_vocabulary(llama_model_get_vocab(model), info);
    return WeightsPtr(new LlamaWeights(model, std::move(info), options.llama));
  }
  if (options.after) options.after();
  ModelInfo info = describe({model, options.llama}, std::move(path), name);
  info.state_bytes_per_slot = file.state_bytes_per_slot;
  // libllama tells of the first layer alone, which is seldom one of the few that attend.
  if (file.hybrid) info.kv_bytes_per_cell = 2 * (file.key_values_per_cell + file.value_values_per_cell);
  std::shared_ptr<LlamaWeights> weights(new LlamaWeights(model, std::move(info), options.llama));
  const bool heads = options.heads && weights->info().architecture == "eagle3";  // they encode the model's states
  if (!heads && (weights->info().encoder || !llama_model_has_decoder(model))) {
    return bad_model(name, "models with an encoder do not generate text here.");
  }
  if (llama_model_is_diffusion(model)) return bad_model(name, "diffusion models do not generate token by token.");
  if (weights->info().vocabulary == 0) return bad_model(name, "it has no vocabulary.");
  if (auto loaded = weights->load_adapters(options.adapters); !loaded) return loaded.error();
  return WeightsPtr(std::move(weights));
}

LlamaWeights::~LlamaWeights() { llama_model_free(model_); }

const llama_vocab* LlamaWeights::vocab() const { return llama_model_get_vocab(model_); }

}  // namespace chasqui
