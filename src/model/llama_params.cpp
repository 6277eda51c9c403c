#include "model/llama_params.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <regex>

#include <common.h>
#include <llama.h>
#include <unistd.h>

#include "model/llama_control_vector.h"

namespace chasqui {
namespace {

constexpr float kContextMost = 1 << 28;  // as of --ctx-size

Error bad_flag(const std::string& flag, const std::string& why) { return invalid_field(flag, flag + " " + why); }

Result<void> check_rope(const common_params& params) {
  const auto bad_factor = [](float value) { return !std::isfinite(value) || value < 0; };  // 0 is the model's own
  if (bad_factor(params.rope_freq_scale)) {
    return invalid_field("--rope-scale", "--rope-scale and --rope-freq-scale must be above 0");
  }
  if (bad_factor(params.rope_freq_base)) return bad_flag("--rope-freq-base", "must be above 0");
  if (params.yarn_orig_ctx < 0) return bad_flag("--yarn-orig-ctx", "must not be negative");
  if (!std::isfinite(params.yarn_ext_factor)) return bad_flag("--yarn-ext-factor", "must be a finite number");
  if (!std::isfinite(params.yarn_attn_factor)) return bad_flag("--yarn-attn-factor", "must be a finite number");
  if (!std::isfinite(params.yarn_beta_fast)) return bad_flag("--yarn-beta-fast", "must be a finite number");
  if (!std::isfinite(params.yarn_beta_slow)) return bad_flag("--yarn-beta-slow", "must be a finite number");
  return {};
}

Result<void> check_cpus(const common_cpu_params& threads, const std::string& flag) {
  if (!threads.mask_valid || std::ranges::find(threads.cpumask, true) != std::end(threads.cpumask)) return {};
  return bad_flag(flag, "names no CPU");
}

// libllama would find out while it loads, and say nothing of the flag.
Result<void> check_patterns(const std::vector<llama_model_tensor_buft_override>& placed) {
  for (const llama_model_tensor_buft_override& tensors : placed) {
    if (tensors.pattern == nullptr) continue;
    try {
      const std::regex pattern(tensors.pattern);
    } catch (const std::regex_error&) {
      return bad_flag("--override-tensor", std::string("is no regular expression: ") + tensors.pattern);
    }
  }
  return {};
}

// Terminated as libllama wants it; LlamaOptions::finish() sees to that.
template <class List>
auto* list_or_null(const List& list) {
  return list.empty() ? nullptr : list.data();
}

std::string in_words(const llama_model_kv_override& value) {
  switch (value.tag) {
    case LLAMA_KV_OVERRIDE_TYPE_INT: return std::to_string(value.val_i64);
    case LLAMA_KV_OVERRIDE_TYPE_FLOAT: return std::to_string(value.val_f64);
    case LLAMA_KV_OVERRIDE_TYPE_BOOL: return value.val_bool ? "true" : "false";
    case LLAMA_KV_OVERRIDE_TYPE_STR: return value.val_str;
  }
  return {};
}

std::string exact(float value) {
  char text[48];
  std::snprintf(text, sizeof text, "%a", static_cast<double>(value));
  return text;
}

}  // namespace

Result<void> check_params(const common_params& params) {
  if (auto rope = check_rope(params); !rope) return rope;
  if (auto cpus = check_cpus(params.cpuparams, "--cpu-mask"); !cpus) return cpus;
  if (auto cpus = check_cpus(params.cpuparams_batch, "--cpu-mask-batch"); !cpus) return cpus;
  if (auto patterns = check_patterns(params.tensor_buft_overrides); !patterns) return patterns;
  if (auto patterns = check_patterns(params.speculative.draft.tensor_buft_overrides); !patterns) return patterns;
  const std::int32_t first = params.control_vector_layer_start;
  const std::int32_t last = params.control_vector_layer_end;
  if (first > 0 && last > 0 && first > last) return bad_flag("--control-vector-layer-range", "ends before it begins");
  for (const common_control_vector_load_info& file : params.control_vectors) {
    if (::access(file.fname.c_str(), R_OK) == 0) continue;
    return bad_flag("--control-vector", "names " + file.fname + ": " + std::strerror(errno));
  }
  return {};
}

llama_model_params first_model_params(const LlamaOptionsPtr& options, bool draft) {
  llama_model_params out = llama_model_default_params();
  if (!options) return out;
  const common_params& params = options->params();
  // libllama's type is that of a list that could be changed; it does not.
  const auto& own = params.speculative.draft.devices;
  out.devices = const_cast<ggml_backend_dev_t*>(list_or_null(draft && !own.empty() ? own : params.devices));
  out.tensor_buft_overrides =
      list_or_null(draft ? params.speculative.draft.tensor_buft_overrides : params.tensor_buft_overrides);
  out.split_mode = params.split_mode;
  out.main_gpu = params.main_gpu;
  out.tensor_split = params.tensor_split;
  out.lazy_mode = params.lazy_mode;
  out.load_mode = params.load_mode;
  out.kv_overrides = list_or_null(params.kv_overrides);
  out.check_tensors = params.check_tensors;
  out.use_extra_bufts = !params.no_extra_bufts;
  out.no_host = params.no_host;
  return out;
}

std::int32_t draft_gpu_layers(const LlamaOptionsPtr& options, std::int32_t of_model) {
  const std::int32_t own = options ? options->params().speculative.draft.n_gpu_layers : -1;
  return own != -1 ? own : of_model;
}

ModelConfig with_draft_flags(ModelConfig config, const LlamaOptionsPtr& options) {
  config.draft = true;
  if (!options) return config;
  const common_params_speculative_draft& own = options->params().speculative.draft;
  const auto of = [](ggml_type type) {
    const auto found = std::ranges::find(kv_types(), static_cast<int>(type), &ggml_type_of);
    CHECK(found != kv_types().end(), "llama-common takes no other formats");
    return *found;
  };
  config.kv_keys = of(own.cache_type_k);
  config.kv_values = of(own.cache_type_v);
  if (own.cpuparams.n_threads > 0) config.threads = config.threads_batch = own.cpuparams.n_threads;
  if (own.cpuparams_batch.n_threads > 0) config.threads_batch = own.cpuparams_batch.n_threads;
  return config;
}

llama_context_params first_context_params(const LlamaOptionsPtr& options) {
  llama_context_params out = llama_context_default_params();
  if (!options) return out;
  const common_params& params = options->params();
  out.rope_scaling_type = params.rope_scaling_type;
  out.rope_freq_base = params.rope_freq_base;
  out.rope_freq_scale = params.rope_freq_scale;
  out.yarn_ext_factor = params.yarn_ext_factor;
  out.yarn_attn_factor = params.yarn_attn_factor;
  out.yarn_beta_fast = params.yarn_beta_fast;
  out.yarn_beta_slow = params.yarn_beta_slow;
  out.yarn_orig_ctx = static_cast<std::uint32_t>(params.yarn_orig_ctx);
  out.offload_kqv = !params.no_kv_offload;
  out.op_offload = !params.no_op_offload;
  return out;
}

int flash_attention_type_of(FlashAttention choice) {
  switch (choice) {
    case FlashAttention::automatic: return LLAMA_FLASH_ATTN_TYPE_AUTO;
    case FlashAttention::on: return LLAMA_FLASH_ATTN_TYPE_ENABLED;
    case FlashAttention::off: return LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

void start_numa(const LlamaOptionsPtr& options) {
  if (!options || options->params().numa == GGML_NUMA_STRATEGY_DISABLED) return;
  static const bool once = [&options] {
    llama_numa_init(options->params().numa);
    return true;
  }();
  static_cast<void>(once);
}

std::optional<std::string> overridden(const LlamaOptionsPtr& options, const std::string& key) {
  if (!options) return std::nullopt;
  const auto& list = options->params().kv_overrides;
  const auto found = std::ranges::find_if(list, [&key](const auto& value) { return value.key == key; });
  return found != list.end() ? std::optional(in_words(*found)) : std::nullopt;
}

// libllama takes back what the model was trained with only for YaRN. With a factor of linear scaling the user says the
// same: that positions so far apart are as near to each other as those that it was trained with.
TokenCount usable_context(const LlamaOptionsPtr& options, const llama_model* model, const std::string& scaling,
                          TokenCount original) {
  const TokenCount trained = llama_model_n_ctx_train(model);
  if (!options) return trained;
  const common_params& params = options->params();
  const float of_model = llama_model_rope_freq_scale_train(model);
  const bool none = params.rope_scaling_type == LLAMA_ROPE_SCALING_TYPE_NONE;
  const float scale = none ? 1.0f : params.rope_freq_scale;
  if (scale == 0 || scale == of_model) return trained;
  const bool own = params.rope_scaling_type == LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED;
  const bool yarn = params.rope_scaling_type == LLAMA_ROPE_SCALING_TYPE_YARN || (own && scaling == "yarn");
  float tokens = static_cast<float>(trained) * of_model / scale;
  if (yarn) {
    const TokenCount before = params.yarn_orig_ctx > 0 ? params.yarn_orig_ctx : original > 0 ? original : trained;
    tokens = static_cast<float>(before) / scale;
  }
  return static_cast<TokenCount>(std::clamp(tokens, 1.0f, kContextMost));
}

std::string marks_of_kv(const LlamaOptionsPtr& options) {
  if (!options) return {};
  const common_params& params = options->params();
  const common_params none{};
  std::string out;
  const auto add = [&out](const char* name, auto value, auto standard) {
    if (value != standard) out += std::string(", ") + name + ' ' + exact(static_cast<float>(value));
  };
  add("RoPE scaling", static_cast<int>(params.rope_scaling_type), static_cast<int>(none.rope_scaling_type));
  add("base", params.rope_freq_base, none.rope_freq_base);
  add("scale", params.rope_freq_scale, none.rope_freq_scale);
  add("YaRN extrapolation", params.yarn_ext_factor, none.yarn_ext_factor);
  add("attention", params.yarn_attn_factor, none.yarn_attn_factor);
  add("fast", params.yarn_beta_fast, none.yarn_beta_fast);
  add("slow", params.yarn_beta_slow, none.yarn_beta_slow);
  add("original context", params.yarn_orig_ctx, none.yarn_orig_ctx);
  for (const llama_model_kv_override& value : params.kv_overrides) {
    if (value.key[0] != 0) out += std::string(", ") + value.key + " = " + in_words(value);
  }
  return out + marks_of_control_vectors(options);
}

std::string marks_of_speed(const LlamaOptionsPtr& options) {
  if (!options) return {};
  const common_params& params = options->params();
  std::string out;
  const auto add_threads = [&out](const char* name, const common_cpu_params& threads) {
    if (threads.mask_valid) out += std::string(", ") + name;
    for (std::int32_t cpu = 0; threads.mask_valid && cpu < GGML_MAX_N_THREADS; ++cpu) {
      if (threads.cpumask[cpu]) out += ' ' + std::to_string(cpu);
    }
    if (threads.strict_cpu) out += std::string(", strict ") + name;
    if (threads.priority != 0) out += std::string(", priority of ") + name + ' ' + std::to_string(threads.priority);
  };
  add_threads("CPUs", params.cpuparams);
  add_threads("CPUs of batches", params.cpuparams_batch);
  if (params.numa != 0) out += ", NUMA " + std::to_string(params.numa);
  if (params.no_extra_bufts) out += ", not repacked";
  if (params.no_host) out += ", no host buffers";
  if (params.no_kv_offload) out += ", KV not offloaded";
  if (params.no_op_offload) out += ", operations not offloaded";
  for (const llama_model_tensor_buft_override& placed : params.tensor_buft_overrides) {
    if (placed.pattern == nullptr) continue;
    out += std::string(", ") + placed.pattern + " on " + ggml_backend_buft_name(placed.buft);
  }
  return out;
}

}  // namespace chasqui
