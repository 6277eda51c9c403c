// libllama's process-wide state: its backends are registered and its log goes into ours (information as debug lines,
// warnings and errors as they are). Any thread.
#pragma once

#include <atomic>
#include <string>

#include "base/error.h"

namespace chasqui {

// Before anything else of libllama; further calls do nothing. Refuses when this binary was compiled for CPU features
// that this machine lacks: a sentence at start instead of SIGILL in the first decode.
Result<void> start_llama_runtime();

// Version, CPU features and what computes beside the CPU, for `chasqui doctor` and the file of tuned threads:
// "libllama 0.5.0 (AVX2 FMA F16C AVX512; Vulkan0: NVIDIA GeForce RTX 3060)".
std::string describe_llama_runtime();

// Models may be computed on a GPU, or on a device of another machine (model/llama_rpc). REQUIRES: start_llama_runtime()
bool offloads_to_gpu();

// The first error that libllama logged on this thread since the last call, without the names of its functions; empty
// when there is none. Its C functions say only that they failed; this says why.
std::string take_llama_error();

// While it lives, and while the flag is set, libllama's warnings and errors on this thread are debug lines: a decode
// that we abort ourselves is not worth an error in the log.
class LlamaLogQuiet {
 public:
  explicit LlamaLogQuiet(const std::atomic<bool>& flag);
  ~LlamaLogQuiet();
  LlamaLogQuiet(const LlamaLogQuiet&) = delete;
  LlamaLogQuiet& operator=(const LlamaLogQuiet&) = delete;
};

}  // namespace chasqui
