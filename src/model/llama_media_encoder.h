// The MediaEncoder of a projector, over libllama's mtmd. It keeps what it has encoded for the next prompt with the
// same picture or sound. One thread at a time encodes, since mtmd's contexts cannot do more; what is kept is found
// meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "base/shared_lock.h"
#include "model/core_share.h"
#include "model/media_encoder.h"

struct mtmd_context;

namespace chasqui {

class LlamaMediaEncoder final : public MediaEncoder {
 public:
  // `width`: of a row. `operations`: that the projector has ended, see operations(). `cores`: on which an encoding
  // counts as a decode; null: all are its own.
  using Operations = std::shared_ptr<std::atomic<std::uint64_t>>;
  LlamaMediaEncoder(std::shared_ptr<mtmd_context> projector, std::size_t width, Operations operations,
                    std::shared_ptr<CoreShare> cores = nullptr,
                    std::size_t bytes_max = kSizeLimit<"encoded_media_bytes">);

  Result<Encoding> encode(const MediaUnit& unit, std::uint32_t tenant) override;
  EncodedMediaPtr find(const MediaUnit& unit, std::uint32_t tenant) override;
  bool keep(const MediaUnit& unit, std::uint32_t tenant, EncodedMediaPtr rows) override;
  void forget(std::uint32_t tenant) override;

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
  bool compute(const MediaUnit& unit);

  const std::shared_ptr<mtmd_context> projector_;
  const std::size_t width_;
  const Operations operations_;
  const std::size_t bytes_max_;
  const std::shared_ptr<CoreShare> cores_;
  std::optional<CoreShare::Place> core_place_;  // of encoding_
  SharedLock encoding_;     // of the projector
  SharedLock lock_;         // of all that follows; taken last, and held for no longer than it takes to look
  std::vector<Kept> kept_;  // the one that was used last is the last
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace chasqui
