// Encodes units of prompts to rows that the model takes in place of tokens' embeddings, and keeps them for the next
// prompt with the same picture or sound. Shared by the contexts of a model; each worker calls it in its own step, and
// one at a time encodes, since mtmd's contexts cannot do more: several workers wait for each other here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "base/shared_lock.h"
#include "core/media.h"

struct mtmd_context;

namespace chasqui {

// Constant; any thread.
struct EncodedMedia {
  std::vector<float> values;  // `width` for each position of the unit
  std::size_t width = 0;

  const float* row(TokenCount place) const { return values.data() + static_cast<std::size_t>(place) * width; }
};
using EncodedMediaPtr = std::shared_ptr<const EncodedMedia>;

class LlamaMediaEncoder {
 public:
  // `width`: of a row.
  // `operations`: that the projector has ended, see operations().
  using Operations = std::shared_ptr<std::atomic<std::uint64_t>>;
  LlamaMediaEncoder(std::shared_ptr<mtmd_context> projector, std::size_t width, Operations operations,
                    std::size_t bytes_max = kSizeLimit<"encoded_media_bytes">)
      : projector_(std::move(projector)), width_(width), operations_(std::move(operations)), bytes_max_(bytes_max) {}

  struct Encoding {
    EncodedMediaPtr rows;
    bool fresh = false;  // it was not kept from before
  };
  // What one tenant has sent is kept for that one alone. Errors: model_failure.
  Result<Encoding> encode(const MediaUnit& unit, std::uint32_t tenant);

  // As Model::operations(): a long encoding is told from one that hangs.
  std::uint64_t operations() const { return operations_->load(std::memory_order_relaxed); }
  // Of what is kept. Does not wait for an encoding.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Kept {
    Checksum identity{};
    std::uint32_t tenant = 0;
    EncodedMediaPtr rows;
  };
  void keep(Kept kept);

  const std::shared_ptr<mtmd_context> projector_;
  const std::size_t width_;
  const Operations operations_;
  const std::size_t bytes_max_;
  SharedLock lock_;         // of all that follows, and of the projector
  std::vector<Kept> kept_;  // the one that was used last is the last
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace chasqui
