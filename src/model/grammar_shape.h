// How much work a grammar can make, found out before it is compiled: llama.cpp follows every way through it at once,
// and a few hundred bytes can have more ways than there is time. Pure; any thread; linear in the text.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace chasqui {

// Errors name `grammar`: too long, nested too deeply, too many rules, too large with its repetitions written out, or
// too many ways to the next character. What is no grammar at all is left for the compiler to refuse.
Result<void> check_grammar_shape(std::string_view text);

// Whether so many requests may each have a copy of it. What cannot be read passes.
Result<void> check_grammar_copies(std::string_view text, std::size_t copies);

}  // namespace chasqui
