// Regular expressions of JSON Schema for a grammar that writes JSON text: what they match must not hold the characters
// that JSON escapes, and the converter must know all of it. Pure; offload pool.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui {

// The pattern with classes instead of `.`, \d and \w, and without quotes, backslashes and control characters in any
// class: narrower, where it allowed them. Errors say what is not supported.
Result<std::string> safe_pattern(std::string_view pattern);

// Empty: unknown.
std::string_view pattern_of_format(std::string_view format);

}  // namespace chasqui
