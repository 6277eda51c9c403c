#include "model/llama_rows.h"

#include <llama.h>

#include "base/error.h"

namespace chasqui {

LlamaRows::LlamaRows(const ModelShape& shape)
    : slots_max_(shape.slots),
      outputs_max_(shape.outputs_max),
      tokens_(static_cast<std::size_t>(shape.rows_max)),
      positions_(tokens_.size()),
      slots_(tokens_.size()),
      slot_counts_(tokens_.size(), 1),
      slot_pointers_(tokens_.size()),
      outputs_(tokens_.size()) {
  for (std::size_t i = 0; i < slots_.size(); ++i) slot_pointers_[i] = &slots_[i];
}

llama_batch LlamaRows::fill(const Batch& batch, const float* embeddings) {
  CHECK(!batch.rows.empty() && batch.rows.size() <= tokens_.size());
  std::int32_t outputs = 0;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const Row& row = batch.rows[i];
    DCHECK(row.slot.value >= 0 && row.slot.value < slots_max_);
    DCHECK(i == 0 || batch.rows[i - 1].slot <= row.slot);
    tokens_[i] = row.token;
    positions_[i] = row.position;
    slots_[i] = row.slot.value;
    outputs_[i] = row.output ? 1 : 0;
    outputs += outputs_[i];
  }
  CHECK(outputs <= outputs_max_);
  llama_batch arrays{};
  arrays.n_tokens = static_cast<std::int32_t>(batch.rows.size());
  arrays.token = embeddings == nullptr ? tokens_.data() : nullptr;
  arrays.embd = const_cast<float*>(embeddings);  // libllama only reads it
  arrays.pos = positions_.data();
  arrays.n_seq_id = slot_counts_.data();
  arrays.seq_id = slot_pointers_.data();
  arrays.logits = outputs_.data();
  return arrays;
}

}  // namespace chasqui
