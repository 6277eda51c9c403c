#include "app/decoder_wire.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/utf8.h"
#include "model/sound_file.h"

namespace chasqui {
namespace {

static_assert(sizeof(DecodeOrder) == 24 && sizeof(DecodeAnswer) == 24, "no gaps, whose bytes would be of anything");
static_assert(std::is_trivially_copyable_v<DecodeOrder> && std::is_trivially_copyable_v<DecodeAnswer>);

constexpr std::int32_t kRateMost = 1 << 20;

bool is_kind(std::uint32_t kind) {
  return kind == static_cast<std::uint32_t>(MediaKind::picture) || kind == static_cast<std::uint32_t>(MediaKind::sound);
}

bool is_picture(const DecodeAnswer& answer) {
  constexpr std::uint64_t kSide = kSizeLimit<"picture_side">;
  const std::uint64_t width = answer.width;
  const std::uint64_t height = answer.height;
  return width >= 1 && width <= kSide && height >= 1 && height <= kSide &&
         width * height <= kSizeLimit<"picture_pixels"> && answer.bytes == 3 * width * height;
}

bool is_sound(const DecodeAnswer& answer, std::int32_t rate) {
  constexpr std::uint64_t kSeconds = kSizeLimit<"sound_seconds"> / 1000;
  return answer.width == 0 && answer.height == 0 && answer.bytes > 0 && answer.bytes % sizeof(float) == 0 &&
         answer.bytes / sizeof(float) <= kSeconds * static_cast<std::uint64_t>(rate);
}

}  // namespace

DecodeOrder order_to_decode(MediaKind kind, std::string_view file, std::int32_t rate) {
  DecodeOrder order;
  order.kind = static_cast<std::uint32_t>(kind);
  order.rate = rate;
  order.bytes = file.size();
  return order;
}

bool is_order(const DecodeOrder& order) {
  return order.mark == DecodeOrder::kMark && is_kind(order.kind) && order.rate >= 0 && order.rate <= kRateMost &&
         order.unused == 0 && order.bytes <= kSizeLimit<"media_bytes">;
}

bool is_greeting(const DecodeAnswer& answer) {
  return answer.mark == DecodeAnswer::kMark && answer.kind == DecodeAnswer::ready && answer.bytes == 0;
}

bool can_answer(const DecodeAnswer& answer, const DecodeOrder& order) {
  if (answer.mark != DecodeAnswer::kMark) return false;
  if (answer.kind == DecodeAnswer::refused) return answer.bytes > 0 && answer.bytes <= kSizeLimit<"error_bytes">;
  if (answer.kind != DecodeAnswer::decoded) return false;
  return order.kind == static_cast<std::uint32_t>(MediaKind::picture) ? is_picture(answer)
                                                                      : is_sound(answer, order.rate);
}

bool are_samples(std::span<const float> samples) {
  return std::ranges::all_of(samples,
                             [](float sample) { return std::isfinite(sample) && std::abs(sample) <= kLoudestSample; });
}

bool is_reason(std::string_view text) {
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f'; };
  return !text.empty() && is_valid_utf8(text) && std::ranges::all_of(text, plain);
}

}  // namespace chasqui
