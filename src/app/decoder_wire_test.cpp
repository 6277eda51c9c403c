#include "app/decoder_wire.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

const DecodeOrder kPictureOrder = order_to_decode(MediaKind::picture, "file", 0);
const DecodeOrder kSoundOrder = order_to_decode(MediaKind::sound, "file", 16'000);

DecodeAnswer decoded(std::uint32_t width, std::uint32_t height, std::uint64_t bytes) {
  return {.kind = DecodeAnswer::decoded, .width = width, .height = height, .bytes = bytes};
}

TEST(DecoderWire, AnOrderIsOfAKnownKindAndWithinItsLimits) {
  EXPECT_TRUE(is_order(kPictureOrder));
  EXPECT_TRUE(is_order(kSoundOrder));
  const auto changed = [](auto change) {
    DecodeOrder order = kSoundOrder;
    change(order);
    return is_order(order);
  };
  EXPECT_FALSE(changed([](DecodeOrder& order) { order.mark ^= 1; }));
  EXPECT_FALSE(changed([](DecodeOrder& order) { order.kind = 2; }));
  EXPECT_FALSE(changed([](DecodeOrder& order) { order.rate = -1; }));
  EXPECT_FALSE(changed([](DecodeOrder& order) { order.rate = std::numeric_limits<std::int32_t>::max(); }));
  EXPECT_TRUE(changed([](DecodeOrder& order) { order.bytes = kSizeLimit<"media_bytes">; }));
  EXPECT_FALSE(changed([](DecodeOrder& order) { order.bytes = kSizeLimit<"media_bytes"> + 1; }));
}

TEST(DecoderWire, APictureHasThreeBytesForEachPixelAndNotTooMany) {
  EXPECT_TRUE(can_answer(decoded(5, 3, 45), kPictureOrder));
  EXPECT_TRUE(can_answer(decoded(8000, 5000, 120'000'000), kPictureOrder));
  EXPECT_FALSE(can_answer(decoded(5, 3, 44), kPictureOrder));
  EXPECT_FALSE(can_answer(decoded(5, 3, 46), kPictureOrder));
  EXPECT_FALSE(can_answer(decoded(0, 0, 0), kPictureOrder));
  EXPECT_FALSE(can_answer(decoded(16'385, 1, 3 * 16'385), kPictureOrder));
  EXPECT_FALSE(can_answer(decoded(8000, 5001, 3ull * 8000 * 5001), kPictureOrder));
  // Would be right modulo 2^32, and modulo 2^64.
  EXPECT_FALSE(can_answer(decoded(1u << 31, 2, 0), kPictureOrder));
  EXPECT_FALSE(can_answer(decoded(1u << 16, 1u << 16, 0), kPictureOrder));
  const std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  EXPECT_FALSE(can_answer(decoded(most, most, 3ull * most * most), kPictureOrder));
}

TEST(DecoderWire, ASoundHasWholeSamplesOfTenMinutesAtMost) {
  EXPECT_TRUE(can_answer(decoded(0, 0, 4), kSoundOrder));
  EXPECT_TRUE(can_answer(decoded(0, 0, 4ull * 600 * 16'000), kSoundOrder));
  EXPECT_FALSE(can_answer(decoded(0, 0, 4ull * 600 * 16'000 + 4), kSoundOrder));
  EXPECT_FALSE(can_answer(decoded(0, 0, 5), kSoundOrder));
  EXPECT_FALSE(can_answer(decoded(0, 0, 0), kSoundOrder));
  EXPECT_FALSE(can_answer(decoded(5, 3, 45), kSoundOrder)) << "a picture was not asked for";
  EXPECT_FALSE(can_answer(decoded(0, 0, 4), kPictureOrder));
}

TEST(DecoderWire, ARefusalHasAReasonThatAClientCanRead) {
  DecodeAnswer refused{.kind = DecodeAnswer::refused, .bytes = 1};
  EXPECT_TRUE(can_answer(refused, kPictureOrder));
  refused.bytes = 0;
  EXPECT_FALSE(can_answer(refused, kPictureOrder));
  refused.bytes = kSizeLimit<"error_bytes"> + 1;
  EXPECT_FALSE(can_answer(refused, kPictureOrder));
  EXPECT_TRUE(is_reason("a picture is 10000 × 10000 pixels large"));
  for (const std::string_view text : {"", "\x1b[2J", "a\nb", "\xff"}) EXPECT_FALSE(is_reason(text));
}

TEST(DecoderWire, AGreetingIsNoAnswer) {
  const DecodeAnswer greeting;
  EXPECT_TRUE(is_greeting(greeting));
  EXPECT_FALSE(can_answer(greeting, kPictureOrder));
  EXPECT_FALSE(is_greeting(decoded(0, 0, 0)));
  EXPECT_FALSE(is_greeting({.mark = 0}));
  EXPECT_FALSE(is_greeting({.bytes = 1}));
}

TEST(DecoderWire, SamplesAreFiniteAndNotTooLoud) {
  EXPECT_TRUE(are_samples(std::vector<float>{0, -16, 16, 1}));
  for (const float bad :
       {17.0f, -17.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_FALSE(are_samples(std::vector<float>{0, bad}));
  }
}

}  // namespace
}  // namespace chasqui
