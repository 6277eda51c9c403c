// What a mistyped word was meant to be: "did you mean". Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui {

// Insertions, deletions, replacements and swaps of neighbours that make one word of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of the candidates, where at most a third of the word was mistyped; else empty.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace chasqui
