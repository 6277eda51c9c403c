#include "base/utf8.h"

namespace chasqui {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// Length announced by a first byte; 0 when no character starts with it.
std::size_t announced_length(unsigned first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

// The second byte carries the rules against overlong forms, surrogates and values over U+10FFFF.
bool valid_second(unsigned first, unsigned second) {
  switch (first) {
    case 0xE0: return second >= 0xA0 && second <= 0xBF;
    case 0xED: return second >= 0x80 && second <= 0x9F;
    case 0xF0: return second >= 0x90 && second <= 0xBF;
    case 0xF4: return second >= 0x80 && second <= 0x8F;
    default: return second >= 0x80 && second <= 0xBF;
  }
}

// How many of the first `length` bytes are there and valid.
std::size_t valid_bytes(std::string_view text, std::size_t length) {
  std::size_t n = 1;
  for (; n < length && n < text.size(); ++n) {
    const unsigned byte = byte_at(text, n);
    const bool ok = n == 1 ? valid_second(byte_at(text, 0), byte) : (byte & 0xC0) == 0x80;
    if (!ok) break;
  }
  return n;
}

}  // namespace

std::size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t length = announced_length(byte_at(text, 0));
  if (length == 0 || text.size() < length) return 0;
  return valid_bytes(text, length) == length ? length : 0;
}

bool utf8_incomplete(std::string_view text) {
  if (text.empty()) return false;
  const std::size_t length = announced_length(byte_at(text, 0));
  return length > text.size() && valid_bytes(text, length) == text.size();
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = utf8_character(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

}  // namespace chasqui
