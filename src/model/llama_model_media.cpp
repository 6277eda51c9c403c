// The part of LlamaModel that reads pictures and sounds.
#include "model/llama_model.h"

namespace chasqui {

// A unit that is read in several steps is kept meanwhile.
Result<bool> LlamaModel::encode(const MediaUnit& unit, std::uint32_t tenant) {
  CHECK(media_ != nullptr, "a prompt with pictures or sounds for a model without a projector");
  if (encoded_ && encoded_unit_ == unit.identity && encoded_tenant_ == tenant) return false;
  encoded_.reset();
  auto encoding = media_->encode(unit, tenant);
  if (!encoding) return encoding.error();
  encoded_ = std::move(encoding->rows);
  encoded_unit_ = unit.identity;
  encoded_tenant_ = tenant;
  return encoding->fresh;
}

// What the rows are in place of tokens; null: they are tokens.
const float* LlamaModel::embeddings_of(const Batch& batch) const {
  if (batch.unit == nullptr) return nullptr;
  CHECK(encoded_ != nullptr && encoded_unit_ == batch.unit->identity, "rows of a unit that was not encoded");
  return encoded_->row(batch.rows[0].position - batch.unit->begin);
}

}  // namespace chasqui
