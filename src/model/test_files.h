// For the tests of this folder: pictures and sounds as files. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace chasqui {

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

inline std::string little_endian(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::uint32_t crc_of(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

inline std::string png_chunk(const std::string& type, const std::string& content) {
  return big_endian(static_cast<std::uint32_t>(content.size())) + type + content + big_endian(crc_of(type + content));
}

inline std::string png_head(std::uint32_t width, std::uint32_t height) {
  const std::string depth{8, 2, 0, 0, 0};
  return std::string("\x89PNG\r\n\x1A\n", 8) + png_chunk("IHDR", big_endian(width) + big_endian(height) + depth);
}

// Not compressed: zlib's blocks of bytes as they are.
inline std::string deflated(const std::string& bytes) {
  std::string out("\x78\x01", 2);
  std::uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  for (std::size_t at = 0; at < bytes.size() || at == 0; at += 65535) {
    const std::string block = bytes.substr(at, 65535);
    const auto length = static_cast<std::uint32_t>(block.size());
    out += static_cast<char>(at + 65535 >= bytes.size() ? 1 : 0);
    out += little_endian(length, 2) + little_endian(~length, 2) + block;
  }
  return out + big_endian(b << 16 | a);
}

// Colours that depend on the place and on `seed`.
inline std::string test_png(std::uint32_t width, std::uint32_t height, std::uint32_t seed = 0) {
  std::string rows;
  for (std::uint32_t y = 0; y < height; ++y) {
    rows += '\0';
    for (std::uint32_t x = 0; x < width; ++x) {
      rows += static_cast<char>(x * 7 + seed * 31);
      rows += static_cast<char>(y * 5 + seed * 17);
      rows += static_cast<char>(x * y + seed);
    }
  }
  return png_head(width, height) + png_chunk("IDAT", deflated(rows)) + png_chunk("IEND", "");
}

inline std::string wav_head(std::uint32_t samples, std::uint32_t rate) {
  const std::uint32_t bytes = 2 * samples;
  return "RIFF" + little_endian(36 + bytes, 4) + "WAVEfmt " + little_endian(16, 4) + little_endian(1, 2) +
         little_endian(1, 2) + little_endian(rate, 4) + little_endian(2 * rate, 4) + little_endian(2, 2) +
         little_endian(16, 2) + "data" + little_endian(bytes, 4);
}

// A saw tooth; `period` in samples.
inline std::string test_wav(std::uint32_t samples, std::uint32_t rate = 16000, std::uint32_t period = 100) {
  std::string out = wav_head(samples, rate);
  for (std::uint32_t i = 0; i < samples; ++i) out += little_endian((i % period) * 200, 2);
  return out;
}

}  // namespace chasqui
