/* mtmd.cpp with three functions more: what a chunk and a context are made of is known inside that file alone. */
#include "clip.h"

namespace {

// Stands for clip_init in mtmd.cpp: `progress_callback_user_data`, which nobody reads without a progress_callback, says
// where the result is noted.
clip_init_result noted_clip_init(const char* path, clip_context_params params) {
  auto* const noted = static_cast<clip_init_result*>(params.progress_callback_user_data);
  const clip_init_result loaded = clip_init(path, params);
  if (noted != nullptr) *noted = loaded;
  return loaded;
}

}  // namespace

#define clip_init noted_clip_init
#include "mtmd.cpp"
#undef clip_init

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

// The constructor of a context may throw after it has loaded the encoders, and they are plain pointers there.
mtmd_context* mtmd_open(const char* path, const llama_model* model, mtmd_context_params params) {
  clip_init_result loaded{};
  params.progress_callback = nullptr;
  params.progress_callback_user_data = &loaded;
  mtmd_context* const context = mtmd_init_from_file(path, model, params);
  if (context == nullptr) {
    for (clip_ctx* const encoder : {loaded.ctx_v, loaded.ctx_a, loaded.ctx_gen_a}) clip_free(encoder);
  }
  return context;
}

void mtmd_use_threads(mtmd_context* context, int threads) { context->n_threads = threads; }

}  // namespace chasqui
