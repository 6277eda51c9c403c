// What the projector encodes of a unit: made by LlamaMedia, encoded by LlamaMediaEncoder. Constant; any thread.
#pragma once

#include <memory>

struct mtmd_input_chunk;
struct mtmd_input_chunks;

namespace chasqui {

struct MediaPixels {
  std::shared_ptr<const mtmd_input_chunks> all;  // of the prompt
  const mtmd_input_chunk* chunk = nullptr;       // the unit's, among them
};

}  // namespace chasqui
