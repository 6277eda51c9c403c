// The part of LlamaModel that reads pictures and sounds, and knows where libllama has their rows.
#include <llama.h>
#include <mtmd.h>

#include "model/llama_model.h"
#include "model/media_pixels.h"

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

bool LlamaModel::has_several_dimensions(const LlamaWeights& weights) {
  const llama_rope_type type = llama_model_rope_type(weights.model());
  return type == LLAMA_ROPE_TYPE_MROPE || type == LLAMA_ROPE_TYPE_IMROPE;
}

// With a further part of a picture that lies on one position, or on few. If its decode ends early, libllama forgets all
// of the picture.
bool LlamaModel::goes_on_inside(const Batch& batch) const {
  return batch.unit != nullptr && batch.unit->advance > 0 && batch.rows[0].position > batch.unit->begin;
}

// libllama wants one position of a token, and all dimensions of what comes in place of tokens.
void LlamaModel::place(const Batch& batch, llama_batch& arrays) {
  if (batch.unit != nullptr) return place_unit(batch, arrays);
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    arrays.pos[i] = positions_of(batch.rows[i].slot).position(batch.rows[i].position);
  }
}

void LlamaModel::place_unit(const Batch& batch, llama_batch& arrays) {
  constexpr std::size_t kDimensions = 4;
  const MediaUnit& unit = *batch.unit;
  const std::size_t rows = batch.rows.size();
  const TokenCount begin = positions_of(batch.rows[0].slot).position(unit.begin);
  const TokenCount first = batch.rows[0].position - unit.begin;
  const mtmd_image_tokens* const picture = mtmd_input_chunk_get_tokens_image(unit.pixels->chunk);
  unit_positions_.resize(rows * kDimensions);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto part = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(i);
    const std::uint32_t line = static_cast<std::uint32_t>(begin) + part;
    mtmd_decoder_pos at{.t = line, .x = line, .y = line, .z = line};  // sounds have one dimension
    if (unit.advance > 0) at = mtmd_image_tokens_get_decoder_pos(picture, begin, part);
    std::size_t place = i;
    for (const std::uint32_t value : {at.t, at.y, at.x, at.z}) {
      unit_positions_[place] = static_cast<std::int32_t>(value);
      place += rows;
    }
  }
  arrays.pos = unit_positions_.data();
}

// Of what was decoded just now.
void LlamaModel::note_positions(const Batch& batch) {
  if (batch.unit == nullptr || batch.unit->advance == 0) return;
  positions_of(batch.rows[0].slot).read(*batch.unit, batch.rows.back().position + 1);
}

}  // namespace chasqui
