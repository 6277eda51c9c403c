// The MediaReader of a model with a projector (mmproj), over libllama's mtmd. Files are decoded by a
// MediaDecoder; mtmd cuts them as the projector wants it and puts the tokens around them that the
// model knows. Const and thread-safe, beside encodings of encoder() too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"
#include "model/llama_media_encoder.h"
#include "model/llama_weights.h"
#include "model/media_decoder.h"
#include "model/media_reader.h"
#include "model/model_config.h"

struct mtmd_bitmap;
struct mtmd_context;
struct mtmd_input_chunk;
struct mtmd_input_chunks;

namespace chasqui {

struct MediaOptions {
  std::string path;                   // of the projector; empty: the model reads text alone
  bool optional = false;              // one that does not fit the model is left out, with a warning
  bool offload = true;                // to a GPU, if there is one
  FlashAttention flash_attention = FlashAttention::automatic;
  std::int32_t image_tokens_min = 0;  // of a picture, where the projector leaves a choice; 0: as it says
  std::int32_t image_tokens_max = 0;
  std::shared_ptr<CoreShare> cores{};  // null: all are its own
  std::shared_ptr<MediaDecoder> decoder{};  // null: files are decoded in this process
  std::size_t decoded_bytes_max = kSizeLimit<"decoded_media_bytes">;
  std::size_t waiting_bytes_max = kSizeLimit<"waiting_media_bytes">;
};

class LlamaMedia final : public MediaReader {
 public:
  // `vocabulary` stays loaded as long as this, `weights` need not. Errors: invalid_request where the file is at fault,
  // or does not fit the model.
  static Result<std::shared_ptr<const LlamaMedia>> make(const MediaOptions& options, const LlamaWeights& weights,
                                                        WeightsPtr vocabulary);

  bool takes(MediaKind kind) const override { return kind == MediaKind::picture ? sees_ : hears_; }
  std::string_view marker() const override { return marker_; }
  // Further errors: overloaded where others' pictures and sounds leave no room.
  Result<MediaPrompt> read(std::string_view text, AddSpecial add, ParseSpecial parse,
                           std::span<const MediaFilePtr> files) const override;

  const std::shared_ptr<LlamaMediaEncoder>& encoder() const { return encoder_; }
  // Of what prompts in use will have encoded.
  std::size_t waiting_bytes() const { return waiting_bytes_->load(); }

 private:
  LlamaMedia() = default;
  Result<std::shared_ptr<mtmd_bitmap>> decode(const MediaFile& file, std::size_t place) const;
  Result<MediaUnit> unit_of(const mtmd_input_chunk* chunk) const;
  Result<std::shared_ptr<const mtmd_input_chunks>> cut(std::string_view text, AddSpecial add, ParseSpecial parse,
                                                       std::span<const MediaFilePtr> files, std::size_t& bytes) const;
  Result<MediaPrompt> assemble(std::shared_ptr<const mtmd_input_chunks> chunks) const;

  // Constant after make().
  WeightsPtr vocabulary_;
  std::shared_ptr<mtmd_context> projector_;
  std::shared_ptr<LlamaMediaEncoder> encoder_;
  std::shared_ptr<MediaDecoder> decoder_;  // null: as picture_file and sound_file do
  std::string marker_;
  std::string identity_;  // of the projector, and how it reads
  bool sees_ = false;
  bool hears_ = false;
  std::int32_t rate_ = 0;  // of sounds
  std::size_t decoded_bytes_max_ = 0;
  std::size_t waiting_bytes_max_ = 0;

  // Of all prompts that are in use: each takes its own off when it goes, which may be after this has gone.
  std::shared_ptr<std::atomic<std::size_t>> waiting_bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace chasqui
