// Characters as bytes: what ranges of Unicode characters look like in UTF-8. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui {

struct CodeRange;

// No surrogate, and not behind the last character of Unicode.
bool is_character(std::uint32_t code);

// REQUIRES: is_character(code)
void append_utf8(std::string& out, std::uint32_t code);

// How many bytes the first character of `text` has; 0 where it does not begin with one.
std::size_t read_utf8(std::string_view text, std::uint32_t& code);

// An automaton for one character out of a set: state 0 is the start, state 1 the end.
struct CharacterBytes {
  struct Step {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint8_t low = 0;
    std::uint8_t high = 0;
  };
  std::vector<Step> steps;
  std::uint32_t states = 2;
};

// REQUIRES: ranges hold characters only
CharacterBytes bytes_of_characters(const std::vector<CodeRange>& ranges);

}  // namespace chasqui
