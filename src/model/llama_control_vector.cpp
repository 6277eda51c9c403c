#include "model/llama_control_vector.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <span>

#include <common.h>
#include <llama.h>

#include "base/checksum.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

constexpr const char* kFlag = "--control-vector";
constexpr const char* kRange = "--control-vector-layer-range";

Error bad_file(const std::string& path, const std::string& why) {
  return invalid_field(kFlag, std::string(kFlag) + ": " + path + ": " + why);
}

// llama-common says what is wrong with a file only in its own log, which is off.
common_control_vector_data load(std::span<const common_control_vector_load_info> files) {
  try {
    return common_control_vector_load({files.begin(), files.end()});
  } catch (const std::exception&) {  // layers without end need memory without end
    return {-1, {}};
  }
}

Result<void> check_file(const common_control_vector_load_info& file, const ModelInfo& model) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.fname.c_str(), "rb"), &std::fclose);
  if (!stream) return bad_file(file.fname, std::string(std::strerror(errno)) + ".");
  take_llama_error();
  const common_control_vector_data directions = load({&file, 1});
  if (directions.n_embd < 0) {
    const std::string reason = take_llama_error();
    return bad_file(file.fname, reason.empty() ? "it has no tensors direction.1 … of 32-bit floats." : reason + ".");
  }
  if (directions.n_embd != model.embedding_length) {
    return bad_file(file.fname, "its directions are " + std::to_string(directions.n_embd) +
                                    " wide, the model's layers " + std::to_string(model.embedding_length) + ".");
  }
  return {};
}

}  // namespace

Result<void> apply_control_vectors(llama_context* context, const LlamaOptionsPtr& options, const ModelInfo& model) {
  if (!options || options->params().control_vectors.empty()) return {};
  const common_params& params = options->params();
  for (const common_control_vector_load_info& file : params.control_vectors) {
    if (auto good = check_file(file, model); !good) return good;
  }
  const std::int32_t first = params.control_vector_layer_start > 0 ? params.control_vector_layer_start : 1;
  const std::int32_t last = params.control_vector_layer_end > 0 ? params.control_vector_layer_end : model.layers;
  if (first > last || first > model.layers) {
    return invalid_field(kRange, std::string(kRange) + ": the model has layers 1 to " + std::to_string(model.layers));
  }
  const common_control_vector_data sum = load(params.control_vectors);
  if (sum.n_embd > 0 &&
      llama_set_adapter_cvec(context, sum.data.data(), sum.data.size(), sum.n_embd, first, last) == 0) {
    return {};
  }
  return invalid_field(kFlag, std::string(kFlag) + ": libllama refused it. " + take_llama_error());
}

std::string marks_of_control_vectors(const LlamaOptionsPtr& options) {
  if (!options || options->params().control_vectors.empty()) return {};
  const common_params& params = options->params();
  const common_control_vector_data sum = load(params.control_vectors);
  std::string out = ", control vectors from " + std::to_string(params.control_vector_layer_start) + " to " +
                    std::to_string(params.control_vector_layer_end) + ' ';
  for (const std::byte byte : checksum(std::as_bytes(std::span(sum.data)))) {
    out += std::to_string(std::to_integer<int>(byte)) + '.';
  }
  return out;
}

}  // namespace chasqui
