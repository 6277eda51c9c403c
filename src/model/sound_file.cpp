#include "model/sound_file.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <miniaudio/miniaudio.h>

#include "base/limits.h"
#include "model/media_limits.h"

namespace chasqui {
namespace {

std::optional<ma_encoding_format> format_of(std::string_view bytes) {
  if (bytes.size() < 12) return std::nullopt;
  if (bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE") return ma_encoding_format_wav;
  if (bytes.starts_with("fLaC")) return ma_encoding_format_flac;
  const bool frame = bytes[0] == '\xFF' && (static_cast<unsigned char>(bytes[1]) & 0xE0) == 0xE0;
  if (frame || bytes.starts_with("ID3")) return ma_encoding_format_mp3;
  return std::nullopt;
}

Error unreadable_sound() { return refused_media("a sound cannot be decoded; WAV, MP3 and FLAC are read"); }

struct DecoderEnd {
  void operator()(ma_decoder* decoder) const { ma_decoder_uninit(decoder); }
};

}  // namespace

Result<std::vector<float>> decode_sound(std::string_view bytes, std::int32_t rate) {
  constexpr std::int64_t kSeconds = kCountLimit<"sound_seconds"> / 1000;
  if (auto small = check_media_size(MediaKind::sound, bytes.size()); !small) return small.error();
  const auto format = format_of(bytes);
  if (!format) return unreadable_sound();
  ma_decoder_config config = ma_decoder_config_init(ma_format_f32, 1, static_cast<ma_uint32>(rate));
  config.encodingFormat = *format;
  const auto storage = std::make_unique<ma_decoder>();
  if (ma_decoder_init_memory(bytes.data(), bytes.size(), &config, storage.get()) != MA_SUCCESS) {
    return unreadable_sound();
  }
  const std::unique_ptr<ma_decoder, DecoderEnd> decoder(storage.get());
  ma_uint64 frames = 0;
  if (ma_decoder_get_length_in_pcm_frames(decoder.get(), &frames) != MA_SUCCESS) return unreadable_sound();
  if (frames > static_cast<ma_uint64>(kSeconds * rate)) {
    return refused_media("a sound is longer than " + std::to_string(kSeconds) + " seconds, the most that is read");
  }
  // Some of mtmd's preprocessors end the process where a sound has one frame, which is a hundredth of a second.
  if (frames < static_cast<ma_uint64>(rate / 50)) return refused_media("a sound is shorter than 0.02 seconds");
  std::vector<float> samples(static_cast<std::size_t>(frames));
  ma_uint64 read = 0;
  const ma_result result = ma_decoder_read_pcm_frames(decoder.get(), samples.data(), frames, &read);
  if (result != MA_SUCCESS || read == 0) return unreadable_sound();
  for (float& sample : samples)
    sample = std::isfinite(sample) ? std::clamp(sample, -kLoudestSample, kLoudestSample) : 0.0f;
  return samples;
}

}  // namespace chasqui
