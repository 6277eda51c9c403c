#include "model/picture_file.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "model/test_files.h"

namespace chasqui {
namespace {

std::string picture_refusal(const std::string& bytes) {
  const auto picture = decode_picture(bytes);
  EXPECT_FALSE(picture);
  if (picture) return {};
  EXPECT_EQ(picture.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(picture.error().field, "messages");
  return picture.error().message;
}

TEST(PictureFile, DecodesToThreeBytesAPixel) {
  const auto picture = decode_picture(test_png(5, 3, 2));
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_EQ(picture->width, 5u);
  EXPECT_EQ(picture->height, 3u);
  ASSERT_EQ(picture->rgb.size(), 45u);
  EXPECT_EQ(picture->rgb[3 * (2 * 5 + 4)], static_cast<unsigned char>(4 * 7 + 62));
  EXPECT_EQ(picture->rgb[3 * (2 * 5 + 4) + 2], 2 * 4 + 2);
}

TEST(PictureFile, RefusesWhatIsNoPicture) {
  EXPECT_NE(picture_refusal("").find("PNG, JPEG, GIF and BMP"), std::string::npos);
  EXPECT_NE(picture_refusal("no picture at all").find("PNG, JPEG, GIF and BMP"), std::string::npos);
  EXPECT_NE(picture_refusal(test_wav(1000)).find("cannot be decoded"), std::string::npos);
}

TEST(PictureFile, RefusesTooManyPixelsByTheHeaderAlone) {
  for (const auto& [width, height] : {std::pair{10'000u, 10'000u}, {20'000u, 10u}, {10u, 20'000u}, {8000u, 5001u}}) {
    const std::string text = picture_refusal(png_head(width, height) + png_chunk("IDAT", "x"));
    EXPECT_NE(text.find(std::to_string(width)), std::string::npos) << text;
    EXPECT_NE(text.find("at most 40000000 pixels"), std::string::npos) << text;
  }
}

// `times` 258 zeros, in 13 bits each.
std::string deflated_zeros(std::size_t times) {
  std::string out("\x78\x01", 2);
  std::uint32_t bits = 0;
  int count = 0;
  const auto add = [&](std::uint32_t value, int width) {
    for (int i = 0; i < width; ++i) {
      bits |= ((value >> i) & 1) << count;
      if (++count < 8) continue;
      out += static_cast<char>(bits);
      bits = 0;
      count = 0;
    }
  };
  add(0b011, 3);       // the last block, with the fixed code
  add(0b00001100, 8);  // a zero; codes are written from their highest bit on
  for (std::size_t i = 0; i < times; ++i) add(0b10100011, 8), add(0, 5);
  add(0, 7);  // the end
  add(0, 7);
  return out;
}

TEST(PictureFile, APixelThatInflatesToManyMegabytesIsRefused) {
  const std::string small = png_head(1, 1) + png_chunk("IDAT", deflated_zeros(100)) + png_chunk("IEND", "");
  EXPECT_TRUE(decode_picture(small)) << "what is too much is left";
  const std::string large = png_head(1, 1) + png_chunk("IDAT", deflated_zeros(500'000)) + png_chunk("IEND", "");
  EXPECT_NE(picture_refusal(large).find("cannot be decoded"), std::string::npos) << large.size() << " bytes for 129 MB";
}

TEST(PictureFile, RefusesAJpegOfManyScans) {
  std::string jpeg("\xFF\xD8\xFF\xC0\x00\x0B\x08\x00\x08\x00\x08\x01\x01\x11\x00", 15);
  for (int i = 0; i < 101; ++i) jpeg += "\xFF\xDA";
  EXPECT_NE(picture_refusal(jpeg).find("at most 100 scans"), std::string::npos);
}

TEST(PictureFile, EveryBeginningAndEveryMutationIsAnAnswer) {
  const std::string whole = test_png(9, 7);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto picture = decode_picture(whole.substr(0, length));
    if (!picture) {
      EXPECT_FALSE(picture.error().message.empty());
    }
  }
  std::mt19937 dice(1);
  int decoded = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string mutated = whole;
    for (int n = 0; n <= i % 4; ++n) mutated[dice() % mutated.size()] = static_cast<char>(dice());
    const auto picture = decode_picture(mutated);
    if (picture) {
      EXPECT_EQ(picture->rgb.size(), std::size_t{3} * picture->width * picture->height);
    }
    decoded += picture ? 1 : 0;
  }
  EXPECT_GT(decoded, 0) << "stb_image does not check sums";
  EXPECT_LT(decoded, 1000);
}

}  // namespace
}  // namespace chasqui
