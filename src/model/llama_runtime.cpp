#include "model/llama_runtime.h"

#include <utility>
#include <vector>

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <llama.h>
#include <log.h>
#include <mtmd.h>

#include "model/llama_log.h"

namespace chasqui {
namespace {

struct CpuFeature {
  const char* name;
  bool compiled;  // ggml was compiled to use it, always
  bool present;
};

#if defined(__x86_64__)
std::vector<CpuFeature> cpu_features() {
  __builtin_cpu_init();
  const auto has = [](int answer) { return answer != 0; };
  const bool avx2 = has(__builtin_cpu_supports("avx2"));
  const bool avx512 = has(__builtin_cpu_supports("avx512f")) && has(__builtin_cpu_supports("avx512cd")) &&
                      has(__builtin_cpu_supports("avx512bw")) && has(__builtin_cpu_supports("avx512dq")) &&
                      has(__builtin_cpu_supports("avx512vl"));
  return {
    {"SSE3", has(ggml_cpu_has_sse3()), has(__builtin_cpu_supports("sse3"))},
        {"SSSE3", has(ggml_cpu_has_ssse3()), has(__builtin_cpu_supports("ssse3"))},
        {"AVX", has(ggml_cpu_has_avx()), has(__builtin_cpu_supports("avx"))}, {"AVX2", has(ggml_cpu_has_avx2()), avx2},
        {"FMA", has(ggml_cpu_has_fma()), has(__builtin_cpu_supports("fma"))},
        {"BMI2", has(ggml_cpu_has_bmi2()), has(__builtin_cpu_supports("bmi2"))},
        // Not every compiler can ask for it; no CPU has AVX2 without it.
        {"F16C", has(ggml_cpu_has_f16c()), avx2}, {"AVX512", has(ggml_cpu_has_avx512()), avx512},
        {"AVX512_VBMI", has(ggml_cpu_has_avx512_vbmi()), has(__builtin_cpu_supports("avx512vbmi"))},
        {"AVX512_VNNI", has(ggml_cpu_has_avx512_vnni()), has(__builtin_cpu_supports("avx512vnni"))},
        {"AVX512_BF16", has(ggml_cpu_has_avx512_bf16()), has(__builtin_cpu_supports("avx512bf16"))},
#if defined(__GNUC__) && !defined(__clang__)
        {"AVX_VNNI", has(ggml_cpu_has_avx_vnni()), has(__builtin_cpu_supports("avxvnni"))},
#endif
  };
}
#else
// Other architectures are compiled for their baseline, which every machine has.
std::vector<CpuFeature> cpu_features() { return {{"NEON", ggml_cpu_has_neon() != 0, true}}; }
#endif

thread_local std::string first_error;
thread_local const std::atomic<bool>* quiet_flag = nullptr;

void write_line(LogLevel level, std::string_view line) {
  const bool quiet = quiet_flag != nullptr && quiet_flag->load(std::memory_order_relaxed);
  if (level == LogLevel::error && !quiet && first_error.empty()) first_error = line;
  // What is information to libllama is detail to those who run a server.
  if (level == LogLevel::error && !quiet) {
    log_error("libllama", {{"text", line}});
  } else if (level == LogLevel::warning && !quiet) {
    log_warning("libllama", {{"text", line}});
  } else {
    log_debug("libllama", {{"text", line}});
  }
}

thread_local LlamaLog llama_log(write_line);

void on_log(ggml_log_level level, const char* text, void*) {
  switch (level) {
    case GGML_LOG_LEVEL_CONT: return llama_log.continue_line(text);
    case GGML_LOG_LEVEL_ERROR: return llama_log.feed(LogLevel::error, text);
    case GGML_LOG_LEVEL_WARN: return llama_log.feed(LogLevel::warning, text);
    default: return llama_log.feed(LogLevel::info, text);
  }
}

Result<void> check_cpu() {
  std::string missing;
  for (const CpuFeature& feature : cpu_features()) {
    if (!feature.compiled || feature.present) continue;
    missing += missing.empty() ? "" : ", ";
    missing += feature.name;
  }
  if (missing.empty()) return {};
  return Error{ErrorCode::unavailable,
               "This binary was built for a CPU with " + missing +
                   ", which this machine does not have. Build it here, "
                   "or use the portable build (cmake --preset portable).",
               ""};
}

}  // namespace

Result<void> start_llama_runtime() {
  static const Result<void> started = [] {
    const Result<void> cpu = check_cpu();
    if (!cpu) return cpu;
    llama_log_set(on_log, nullptr);
    mtmd_log_set(on_log, nullptr);
    // llama-common has a log of its own, on standard error. What it knows comes to us as exceptions too.
    common_log_set_verbosity_thold(-1);
    llama_backend_init();
    return cpu;
  }();
  return started;
}

// libllama's own answer is yes wherever devices could be added, too.
bool offloads_to_gpu() {
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const auto type = ggml_backend_dev_type(ggml_backend_dev_get(i));
    if (type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU) return true;
  }
  return false;
}

std::string describe_llama_runtime() {
  std::string text = std::string("libllama ") + llama_version() + " (";
  const char* separator = "";
  for (const CpuFeature& feature : cpu_features()) {
    if (!feature.compiled) continue;
    text += separator;
    text += feature.name;
    separator = " ";
  }
  separator = "; ";
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) continue;
    text += separator + std::string(ggml_backend_dev_name(device)) + ": " + ggml_backend_dev_description(device);
    separator = ", ";
  }
  return text + ")";
}

std::string take_llama_error() {
  std::string text = std::exchange(first_error, {});
  for (std::size_t end = text.find(": "); end != std::string::npos; end = text.find(": ")) {
    const std::string_view head = std::string_view(text).substr(0, end);
    const bool function = head.find_first_of(" '\"") == std::string_view::npos;
    if (!function && head != "error loading model") break;
    text.erase(0, end + 2);
  }
  return text;
}

LlamaLogQuiet::LlamaLogQuiet(const std::atomic<bool>& flag) { quiet_flag = &flag; }
LlamaLogQuiet::~LlamaLogQuiet() { quiet_flag = nullptr; }

}  // namespace chasqui
