#include "base/checksum.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::vector<std::byte> random_bytes(std::size_t size) {
  std::mt19937_64 random(size + 1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::string hex(const Checksum& sum) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : sum) {
    out += kDigits[std::to_integer<unsigned>(byte) >> 4];
    out += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

// Files outlive programs, so the sums must never change: the published ones of XXH3.
TEST(Checksum, IsTheOneThatOthersCompute) {
  EXPECT_EQ(hex(checksum({})), "99aa06d3014798d86001c324468d497f");
  const std::string_view text = "abc";
  EXPECT_EQ(hex(checksum(std::as_bytes(std::span(text)))), "06b05ab6733a618578af5f94892f3950");
}

TEST(Checksum, OfPiecesIsThatOfTheWhole) {
  for (const std::size_t size : {0u, 1u, 16u, 17u, 128u, 240u, 241u, 1000u, 70'000u}) {
    const std::vector<std::byte> bytes = random_bytes(size);
    Checksummer pieces;
    for (std::size_t at = 0, step = 1; at < size; step = step * 3 % 1009 + 1) {
      const std::size_t piece = std::min(step, size - at);
      pieces.add(std::span(bytes).subspan(at, piece));
      at += piece;
    }
    EXPECT_EQ(pieces.result(), checksum(bytes)) << size;
  }
}

TEST(Checksum, ChangesWithEveryBit) {
  std::vector<std::byte> bytes = random_bytes(300);
  const Checksum before = checksum(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_NE(checksum(bytes), before) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace chasqui
