/* mtmd.cpp with two functions more: what a chunk and a context are made of is known inside that file alone. */
#include "mtmd.cpp"

#include "mtmd_bytes.h"

namespace chasqui {

std::size_t mtmd_chunk_bytes(const mtmd_input_chunk* chunk) {
  std::size_t values = 0;
  const auto add = [&values](const clip_image_f32_batch& batch) {
    for (const auto& entry : batch.entries) values += entry.is_placeholder() ? 0 : entry.get_ro_buf().size();
  };
  if (chunk->tokens_image) add(chunk->tokens_image->batch_f32);
  if (chunk->tokens_audio) add(chunk->tokens_audio->batch_f32);
  return values * sizeof(float);
}

void mtmd_use_threads(mtmd_context* context, int threads) { context->n_threads = threads; }

}  // namespace chasqui
