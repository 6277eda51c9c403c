// Sets of Unicode characters as ranges, for regular expressions and what GBNF writes of them. Pure functions; any
// thread.
//
// Holds: the ranges of a set are sorted, disjoint and do not touch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/grammar/gbnf.h"

namespace chasqui {

using CodeSet = std::vector<CodeRange>;

constexpr std::uint32_t kLastCode = 0x10FFFF;

// Sorts and joins; ranges that are the wrong way round are left out.
CodeSet code_set(std::vector<CodeRange> ranges);
CodeSet complement_of(const CodeSet& set);
CodeSet common_codes(const CodeSet& a, const CodeSet& b);
bool has_code(const CodeSet& set, std::uint32_t code);

// What a string of JSON text may hold in the place of one character of `set`, as an alternative of GBNF. Characters
// that JSON must escape are written with their short escape; control characters without one are left out, and so is
// U+007F, as in llama.cpp's grammars. Empty: the set has no other characters.
std::string json_string_class(const CodeSet& set);

}  // namespace chasqui
