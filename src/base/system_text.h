// What the kernel tells in small text files, below /proc and /sys, and the numbers that lines of theirs begin with. Any
// thread.
#pragma once

#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace chasqui {

// Empty: there is no such file, or nothing in it.
inline std::string system_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Behind blanks; none: something else stands there, as "max".
template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace chasqui
