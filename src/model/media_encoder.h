// Encodes units of prompts to rows that a model takes in place of tokens' embeddings. Shared by the contexts of a
// model, asleep or awake, and by the threads that encode for them; any thread. Implemented by LlamaMediaEncoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "core/media.h"

namespace chasqui {

// Constant; any thread.
struct EncodedMedia {
  std::vector<float> values;  // `width` for each position of the unit
  std::size_t width = 0;

  const float* row(TokenCount place) const { return values.data() + static_cast<std::size_t>(place) * width; }
};
using EncodedMediaPtr = std::shared_ptr<const EncodedMedia>;

class MediaEncoder {
 public:
  struct Encoding {
    EncodedMediaPtr rows;  // kept for the next who asks, at least for as long as they are held
    bool fresh = false;    // they were not kept from before
  };

  virtual ~MediaEncoder() = default;

  // Takes up to seconds, and nothing where they are kept. What one tenant has sent is kept for that one alone.
  // Errors: model_failure.
  virtual Result<Encoding> encode(const MediaUnit& unit, std::uint32_t tenant) = 0;
  // What is kept of it; null: nothing.
  virtual EncodedMediaPtr find(const MediaUnit& unit, std::uint32_t tenant) = 0;
  // As if it had been encoded. False: it could not have been, since its rows are of another width.
  virtual bool keep(const MediaUnit& unit, std::uint32_t tenant, EncodedMediaPtr rows) = 0;
  // Nothing is kept of what this tenant has sent, but what is being encoded; rows that a request holds go with it. Does
  // not wait for an encoding.
  virtual void forget(std::uint32_t tenant) = 0;
};

}  // namespace chasqui
