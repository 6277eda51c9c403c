#include "model/llama_media_encoder.h"

#include <algorithm>
#include <utility>

#include <mtmd.h>

#include "model/llama_runtime.h"
#include "model/media_pixels.h"

namespace chasqui {
namespace {

std::size_t bytes_of(const EncodedMedia& rows) { return rows.values.size() * sizeof(float); }

}  // namespace

Result<LlamaMediaEncoder::Encoding> LlamaMediaEncoder::encode(const MediaUnit& unit, std::uint32_t tenant) {
  const SharedLock::Writing alone(lock_);
  const auto same = [&](const Kept& kept) { return kept.identity == unit.identity && kept.tenant == tenant; };
  if (const auto found = std::ranges::find_if(kept_, same); found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    return Encoding{kept_.back().rows, false};
  }
  const mtmd_input_chunk* const chunk = unit.pixels->chunk;
  take_llama_error();
  if (mtmd_encode_chunk(projector_.get(), chunk) != 0) {
    return Error{ErrorCode::model_failure, "the projector failed to encode: " + take_llama_error(), ""};
  }
  auto rows = std::make_shared<EncodedMedia>();
  rows->width = width_;
  const float* const values = mtmd_get_output_embd(projector_.get());
  rows->values.assign(values, values + width_ * static_cast<std::size_t>(unit.positions));
  keep({unit.identity, tenant, rows});
  return Encoding{std::move(rows), true};
}

void LlamaMediaEncoder::keep(Kept kept) {
  const std::size_t needed = bytes_of(*kept.rows);
  if (needed > bytes_max_) return;
  auto first = kept_.begin();
  for (; bytes_ + needed > bytes_max_; ++first) bytes_ -= bytes_of(*first->rows);
  kept_.erase(kept_.begin(), first);
  kept_.push_back(std::move(kept));
  bytes_ += needed;
}

}  // namespace chasqui
