// Letters and digits of ASCII, whatever the locale is: for names, schemes, headers and the like, which have no others.
// Pure; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace chasqui {

constexpr bool is_ascii_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
// … or one of `others`.
constexpr bool is_ascii_word_or(std::string_view others, char c) {
  return is_ascii_word(c) || others.find(c) != std::string_view::npos;
}

constexpr char in_small_letters(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline std::string in_small_letters(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = in_small_letters(c);
  return out;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return in_small_letters(x) == in_small_letters(y); });
}

}  // namespace chasqui
