// Vectors of texts: POST /v1/embeddings (OpenAI), /embeddings (llama-server), /api/embed and /api/embeddings (Ollama).
// Beside generation, not instead of it. Bodies are read, and answers written, in the offload pool; the prepare
// functions run on any thread and only read `served`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/body/fields.h"
#include "api/core/call.h"
#include "api/core/request_log.h"
#include "api/core/served_model.h"
#include "base/limits.h"
#include "model/embedder.h"

namespace chasqui {

// What is to be computed, and how the outcome is told. `write` runs in the pool, and owns what it uses.
struct VectorJob {
  std::vector<std::vector<Token>> inputs;
  std::function<Result<std::string>(std::vector<Embedded>)> write;

  std::size_t tokens() const;
};
using PrepareVectors = Result<VectorJob> (*)(const ServedModel&, const std::string& body);

Result<VectorJob> prepare_openai_embeddings(const ServedModel& served, const std::string& body);
Result<VectorJob> prepare_native_embeddings(const ServedModel& served, const std::string& body);
Result<VectorJob> prepare_ollama_embed(const ServedModel& served, const std::string& body);
Result<VectorJob> prepare_ollama_embeddings(const ServedModel& served, const std::string& body);

// A request needs a permit, and has a line in the log, as for generation.
Handled handle_vectors(Call call, PrepareVectors prepare, RequestKind kind);

// Inputs of one request.
constexpr std::size_t kInputsMax = kSizeLimit<"inputs">;
// Errors say that `name` is too long.
Result<void> check_input(const ServedModel& served, const std::vector<Token>& tokens, const std::string& name);

// llama-server's `embd_normalize`: -1 leaves them, 0 makes the greatest 32,760, p makes the p-norm 1.
void normalize(std::span<float> values, std::int64_t norm);
// Numbers of four bytes, little-endian.
std::string base64_of(std::span<const float> values);

}  // namespace chasqui
