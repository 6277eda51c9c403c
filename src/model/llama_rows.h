// The rows of a Batch as libllama takes them. Made once, as wide as the batches may become, so that a step allocates
// nothing. Owned by who decodes them; worker thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "model/model.h"

struct llama_batch;

namespace chasqui {

class LlamaRows {
 public:
  explicit LlamaRows(const ModelShape& shape);
  LlamaRows(const LlamaRows&) = delete;
  LlamaRows& operator=(const LlamaRows&) = delete;

  // Valid until the next fill(). REQUIRES: rows that fit the shape; no others may reach libllama, which ends the
  // process.
  // `embeddings`: what the rows are in place of tokens; null: tokens.
  llama_batch fill(const Batch& batch, const float* embeddings = nullptr);

 private:
  const std::int32_t slots_max_;
  const std::int32_t outputs_max_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> slots_;
  std::vector<std::int32_t> slot_counts_;
  std::vector<std::int32_t*> slot_pointers_;
  std::vector<std::int8_t> outputs_;
};

}  // namespace chasqui
