#include "model/llama_media.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <llama.h>
#include <mtmd.h>
#include <mtmd_bytes.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/random_id.h"
#include "model/content_hash.h"
#include "model/llama_params.h"
#include "model/llama_runtime.h"
#include "model/media_limits.h"
#include "model/media_pixels.h"
#include "model/model_config.h"
#include "model/picture_file.h"
#include "model/sound_file.h"
#include "model/weights_identity.h"

namespace chasqui {
namespace {

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// Asked before each operation whether it is one to stop at, and told when all up to it are done.
bool count_operation(ggml_tensor*, bool asks, void* operations) {
  constexpr std::uint64_t kOfEach = 64;
  const std::uint64_t before = static_cast<std::atomic<std::uint64_t>*>(operations)->fetch_add(1);
  return !asks || before % kOfEach == 0;
}

std::shared_ptr<mtmd_context> open(const MediaOptions& options, const LlamaWeights& weights, const std::string& marker,
                                   std::atomic<std::uint64_t>& operations) {
  mtmd_context_params params = mtmd_context_params_default();
  params.use_gpu = options.offload && offloads_to_gpu();
  params.print_timings = false;
  params.n_threads = default_threads();
  params.flash_attn_type = static_cast<llama_flash_attn_type>(flash_attention_type_of(options.flash_attention));
  params.media_marker = marker.c_str();
  params.cb_eval = count_operation;
  params.cb_eval_user_data = &operations;
  if (options.image_tokens_min > 0) params.image_min_tokens = options.image_tokens_min;
  if (options.image_tokens_max > 0) params.image_max_tokens = options.image_tokens_max;
  return {mtmd_open(options.path.c_str(), weights.model(), params), mtmd_free};
}

Error does_not_fit(const MediaOptions& options) {
  return invalid_field("mmproj", "Cannot use the projector " + options.path + ": " + take_llama_error());
}

Error too_much_in_one(std::size_t bytes) {
  return refused_media("the pictures and sounds of a request have at most " + std::to_string(bytes / 3) +
                       " pixels together, or " + std::to_string(bytes / sizeof(float)) + " samples");
}

// A picture is encoded in about that time, on a CPU in several times as much.
Error no_room() {
  return {ErrorCode::overloaded, "Pictures and sounds of other requests leave no room for these; try again later.", "",
          seconds(1)};
}

std::size_t bytes_of(const mtmd_input_chunks* chunks) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < mtmd_input_chunks_size(chunks); ++i) {
    bytes += mtmd_chunk_bytes(mtmd_input_chunks_get(chunks, i));
  }
  return bytes;
}

}  // namespace

Result<std::shared_ptr<const LlamaMedia>> LlamaMedia::make(const MediaOptions& options, const LlamaWeights& weights,
                                                           WeightsPtr vocabulary) {
  std::shared_ptr<LlamaMedia> media(new LlamaMedia);
  media->marker_ = random_id("<__media_") + "__>";
  media->decoded_bytes_max_ = options.decoded_bytes_max;
  media->waiting_bytes_max_ = options.waiting_bytes_max;
  const auto operations = std::make_shared<std::atomic<std::uint64_t>>(0);
  take_llama_error();
  media->projector_ = open(options, weights, media->marker_, *operations);
  if (!media->projector_) return does_not_fit(options);
  const mtmd_context* const projector = media->projector_.get();
  media->sees_ = mtmd_support_vision(projector);
  media->hears_ = mtmd_support_audio(projector);
  media->rate_ = mtmd_get_audio_sample_rate(projector);
  const auto file = identify_weights(options.path);
  if (!file) return file.error();
  media->identity_.assign(reinterpret_cast<const char*>(file->data()), file->size());
  media->identity_ += std::string(" libllama ") + CHASQUI_LLAMA_COMMIT + ", " +
                      std::to_string(options.image_tokens_min) + " to " + std::to_string(options.image_tokens_max);
  if (options.flash_attention != FlashAttention::automatic) {
    media->identity_ += ", flash attention " + std::to_string(static_cast<int>(options.flash_attention));
  }
  const auto width = static_cast<std::size_t>(llama_model_n_embd_inp(weights.model()));
  if (vocabulary.get() != &weights) {  // those may be freed
    media->projector_.reset();
    media->projector_ = open(options, *vocabulary, media->marker_, *operations);
    if (!media->projector_) return does_not_fit(options);
  }
  media->vocabulary_ = std::move(vocabulary);
  media->encoder_ = std::make_shared<LlamaMediaEncoder>(media->projector_, width, operations, options.cores);
  media->decoder_ = options.decoder;
  if (media->decoder_) media->decoder_->expect_files();
  log_info("projector loaded",
           {{"file", options.path}, {"pictures", media->sees_}, {"sounds", media->hears_}, {"width", width}});
  return std::shared_ptr<const LlamaMedia>(std::move(media));
}

// The id of a bitmap is that of the file, and its place among them, so that two equal ones can be told apart.
Result<std::shared_ptr<mtmd_bitmap>> LlamaMedia::decode(const MediaFile& file, std::size_t place) const {
  mtmd_bitmap* bitmap = nullptr;
  if (file.kind == MediaKind::picture) {
    if (!sees_) return refused_media("this model reads no pictures");
    const auto picture = decoder_ ? decoder_->picture(file.bytes) : decode_picture(file.bytes);
    if (!picture) return picture.error();
    bitmap = mtmd_bitmap_init(picture->width, picture->height, picture->rgb.data());
  } else {
    if (!hears_) return refused_media("this model reads no sounds");
    const auto samples = decoder_ ? decoder_->sound(file.bytes, rate_) : decode_sound(file.bytes, rate_);
    if (!samples) return samples.error();
    bitmap = mtmd_bitmap_init_from_audio(samples->size(), samples->data());
  }
  mtmd_bitmap_set_id(bitmap, (in_hex(content_hash(file.bytes)) + " " + std::to_string(place)).c_str());
  return std::shared_ptr<mtmd_bitmap>(bitmap, mtmd_bitmap_free);
}

Result<MediaPrompt> LlamaMedia::read(std::string_view text, AddSpecial add, ParseSpecial parse,
                                     std::span<const MediaFilePtr> files) const {
  if (const std::size_t markers = count_of(text, marker_); markers != files.size()) {
    return refused_media("the chat template of this model has put " + std::to_string(markers) + " of " +
                         std::to_string(files.size()) + " pictures and sounds into the prompt");
  }
  const std::size_t before = waiting_bytes_->load();
  if (before > waiting_bytes_max_ && !files.empty()) return no_room();
  std::size_t decoded_bytes = 0;
  auto chunks = cut(text, add, parse, files, decoded_bytes);
  if (!chunks) return chunks.error();
  // A request that comes alone is taken whatever its size, which its own limits bound.
  if (before > 0 && waiting_bytes_->load() > waiting_bytes_max_ && !files.empty()) return no_room();
  auto prompt = assemble(std::move(*chunks));
  if (prompt) prompt->decoded_bytes = decoded_bytes;
  return prompt;
}

Result<std::shared_ptr<const mtmd_input_chunks>> LlamaMedia::cut(std::string_view text, AddSpecial add,
                                                                 ParseSpecial parse,
                                                                 std::span<const MediaFilePtr> files,
                                                                 std::size_t& bytes) const {
  std::vector<std::shared_ptr<mtmd_bitmap>> decoded;
  std::vector<const mtmd_bitmap*> bitmaps;
  for (const MediaFilePtr& file : files) {
    auto bitmap = decode(*file, decoded.size());
    if (!bitmap) return bitmap.error();
    bytes += mtmd_bitmap_get_n_bytes(bitmap->get());
    if (bytes > decoded_bytes_max_) return too_much_in_one(decoded_bytes_max_);
    decoded.push_back(std::move(*bitmap));
    bitmaps.push_back(decoded.back().get());
  }
  std::unique_ptr<mtmd_input_chunks, void (*)(mtmd_input_chunks*)> chunks(mtmd_input_chunks_init(),
                                                                          mtmd_input_chunks_free);
  const mtmd_input_text input{text.data(), text.size(), add == AddSpecial::yes, parse == ParseSpecial::yes};
  take_llama_error();
  if (mtmd_tokenize(projector_.get(), chunks.get(), &input, bitmaps.data(), bitmaps.size()) != 0) {
    return refused_media("a picture or a sound is not one that this model can read: " + take_llama_error());
  }
  const std::size_t kept = bytes_of(chunks.get());
  waiting_bytes_->fetch_add(kept);
  return std::shared_ptr<const mtmd_input_chunks>(chunks.release(),
                                                  [kept, all = waiting_bytes_](mtmd_input_chunks* used) {
                                                    mtmd_input_chunks_free(used);
                                                    all->fetch_sub(kept);
                                                  });
}

Result<MediaUnit> LlamaMedia::unit_of(const mtmd_input_chunk* chunk) const {
  const std::size_t tokens = mtmd_input_chunk_get_n_tokens(chunk);
  const llama_pos advance = mtmd_input_chunk_get_n_pos(chunk);
  const bool grid = mtmd_decode_use_mrope(projector_.get()) && mtmd_input_chunk_get_tokens_image(chunk) != nullptr;
  const bool usable = grid ? advance > 0 && std::cmp_less_equal(advance, tokens) : std::cmp_equal(advance, tokens);
  if (tokens < 1 || !usable) {
    return refused_media("a picture or a sound has no positions that this server can use");
  }
  MediaUnit unit;
  if (grid) unit.advance = advance;
  unit.kind = mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_IMAGE ? MediaKind::picture : MediaKind::sound;
  unit.positions = static_cast<TokenCount>(tokens);
  unit.causal = !mtmd_decode_use_non_causal(projector_.get(), chunk);
  return unit;
}

// A file may become several units: slices of a picture, pieces of a long sound.
Result<MediaPrompt> LlamaMedia::assemble(std::shared_ptr<const mtmd_input_chunks> chunks) const {
  MediaPrompt prompt;
  auto units = std::make_shared<MediaUnits>();
  std::string file;
  std::size_t piece = 0;
  for (std::size_t i = 0; i < mtmd_input_chunks_size(chunks.get()); ++i) {
    const mtmd_input_chunk* const chunk = mtmd_input_chunks_get(chunks.get(), i);
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
      std::size_t tokens = 0;
      const llama_token* const text = mtmd_input_chunk_get_tokens_text(chunk, &tokens);
      prompt.tokens.insert(prompt.tokens.end(), text, text + tokens);
      continue;
    }
    auto unit = unit_of(chunk);
    if (!unit) return unit.error();
    const std::string id = mtmd_input_chunk_get_id(chunk);
    piece = id == file ? piece + 1 : 0;
    file = id;
    const std::string content = id.substr(0, id.find(' '));
    const ContentHash digest =
        content_hash(identity_ + ' ' + content + ' ' + std::to_string(piece) + ' ' +
                     std::to_string(static_cast<int>(unit->kind)) + ' ' + std::to_string(unit->positions));
    std::memcpy(unit->identity.data(), digest.data(), unit->identity.size());
    unit->begin = static_cast<TokenCount>(prompt.tokens.size());
    unit->pixels = std::make_shared<MediaPixels>(MediaPixels{chunks, chunk});
    for (TokenCount place = 0; place < unit->positions; ++place) {
      prompt.tokens.push_back(media_token(unit->identity, place));
    }
    units->push_back(std::move(*unit));
  }
  if (!units->empty()) prompt.units = std::move(units);
  return prompt;
}

}  // namespace chasqui
