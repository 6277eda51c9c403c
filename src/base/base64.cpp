#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace chasqui {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint32_t kNoLetter = 1U << 24;  // above all that four letters stand for

// What a letter stands for in one of the four places of a group.
using Places = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Places kPlaces = [] {
  Places out{};
  for (std::size_t place = 0; place < 4; ++place) {
    out[place].fill(kNoLetter);
    const std::size_t shift = 18 - 6 * place;
    for (std::uint32_t value = 0; value < kLetters.size(); ++value) {
      out[place][static_cast<unsigned char>(kLetters[value])] = value << shift;
    }
    out[place]['-'] = 62U << shift;
    out[place]['_'] = 63U << shift;
  }
  return out;
}();

// `count` letters of a group, from 2 to 4.
std::uint32_t group_of(const char* letters, std::size_t count) {
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < count; ++i) group |= kPlaces[i][static_cast<unsigned char>(letters[i])];
  return group;
}

std::string_view without_padding(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return text;
  if (text.back() == '=') text.remove_suffix(1);
  if (text.back() == '=') text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  text = without_padding(text);
  const std::size_t rest = text.size() % 4;
  if (rest == 1) return std::nullopt;
  std::string out(text.size() / 4 * 3 + (rest > 0 ? rest - 1 : 0), '\0');
  char* to = out.data();
  std::uint32_t seen = 0;  // bits of all groups
  std::size_t at = 0;
  for (; at + 4 <= text.size(); at += 4) {
    const std::uint32_t group = group_of(text.data() + at, 4);
    seen |= group;
    *to++ = static_cast<char>(group >> 16);
    *to++ = static_cast<char>(group >> 8);
    *to++ = static_cast<char>(group);
  }
  if (rest > 0) {
    const std::uint32_t group = group_of(text.data() + at, rest);
    seen |= group;
    *to++ = static_cast<char>(group >> 16);
    if (rest == 3) *to++ = static_cast<char>(group >> 8);
    if ((group & (rest == 3 ? 0xFFU : 0xFFFFU)) != 0) return std::nullopt;
  }
  if (seen >= kNoLetter) return std::nullopt;
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < here; ++i) {
      group |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (16 - 8 * i);
    }
    for (std::size_t i = 0; i <= here; ++i) out += kLetters[(group >> (18 - 6 * i)) & 63];
    out.append(3 - here, '=');
  }
  return out;
}

}  // namespace chasqui
