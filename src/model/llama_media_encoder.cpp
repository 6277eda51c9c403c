#include "model/llama_media_encoder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <mtmd.h>
#include <mtmd_bytes.h>

#include "base/clock.h"
#include "model/llama_runtime.h"
#include "model/media_pixels.h"

namespace chasqui {
namespace {

std::size_t bytes_of(const EncodedMedia& rows) { return rows.values.size() * sizeof(float); }

}  // namespace

LlamaMediaEncoder::LlamaMediaEncoder(std::shared_ptr<mtmd_context> projector, std::size_t width, Operations operations,
                                     std::shared_ptr<CoreShare> cores, std::size_t bytes_max)
    : projector_(std::move(projector)),
      width_(width),
      operations_(std::move(operations)),
      bytes_max_(bytes_max),
      cores_(std::move(cores)) {
  if (cores_) core_place_.emplace(*cores_);
}

// With its part of the cores: streams go on beside it.
bool LlamaMediaEncoder::compute(const MediaUnit& unit) {
  if (!cores_) return mtmd_encode_chunk(projector_.get(), unit.pixels->chunk) == 0;
  const RealClock clock;
  core_place_->begin_decode();
  mtmd_use_threads(projector_.get(), cores_->part(clock.now()));
  const bool computed = mtmd_encode_chunk(projector_.get(), unit.pixels->chunk) == 0;
  core_place_->end_decode(clock.now());
  return computed;
}

EncodedMediaPtr LlamaMediaEncoder::find(const MediaUnit& unit, std::uint32_t tenant) {
  const SharedLock::Writing alone(lock_);
  const auto same = [&](const Kept& kept) { return kept.identity == unit.identity && kept.tenant == tenant; };
  const auto found = std::ranges::find_if(kept_, same);
  if (found == kept_.end()) return nullptr;
  std::rotate(found, found + 1, kept_.end());
  return kept_.back().rows;
}

Result<MediaEncoder::Encoding> LlamaMediaEncoder::encode(const MediaUnit& unit, std::uint32_t tenant) {
  if (auto kept = find(unit, tenant)) return Encoding{std::move(kept), false};
  const SharedLock::Writing alone(encoding_);
  // Another thread may have encoded the same meanwhile.
  if (auto kept = find(unit, tenant)) return Encoding{std::move(kept), false};
  take_llama_error();
  if (!compute(unit)) {
    return Error{ErrorCode::model_failure, "the projector failed to encode: " + take_llama_error(), ""};
  }
  auto rows = std::make_shared<EncodedMedia>();
  rows->width = width_;
  const float* const values = mtmd_get_output_embd(projector_.get());
  rows->values.assign(values, values + width_ * static_cast<std::size_t>(unit.positions));
  keep(unit, tenant, rows);
  return Encoding{std::move(rows), true};
}

void LlamaMediaEncoder::forget(std::uint32_t tenant) {
  std::vector<Kept> gone;  // freed without the lock
  const SharedLock::Writing alone(lock_);
  const auto others = [tenant](const Kept& kept) { return kept.tenant != tenant; };
  const auto first = std::stable_partition(kept_.begin(), kept_.end(), others);
  gone.assign(std::make_move_iterator(first), std::make_move_iterator(kept_.end()));
  kept_.erase(first, kept_.end());
  for (const Kept& kept : gone) bytes_ -= bytes_of(*kept.rows);
}

// What is held elsewhere stays, so that its holder never has it encoded again.
bool LlamaMediaEncoder::keep(const MediaUnit& unit, std::uint32_t tenant, EncodedMediaPtr rows) {
  const std::size_t needed = bytes_of(*rows);
  if (needed != width_ * static_cast<std::size_t>(unit.positions) * sizeof(float)) return false;
  const SharedLock::Writing alone(lock_);
  const auto same = [&](const Kept& kept) { return kept.identity == unit.identity && kept.tenant == tenant; };
  if (std::ranges::any_of(kept_, same)) return true;  // another thread has read the same file
  std::erase_if(kept_, [&](const Kept& old) {
    if (bytes_ + needed <= bytes_max_ || old.rows.use_count() > 1) return false;
    bytes_ -= bytes_of(*old.rows);
    return true;
  });
  kept_.push_back({unit.identity, tenant, std::move(rows)});
  bytes_ += needed;
  return true;
}

}  // namespace chasqui
