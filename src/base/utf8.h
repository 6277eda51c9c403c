// The little that Chasqui needs to know about UTF-8: where a valid character ends. Any thread; pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace chasqui {

// Length in bytes (1 to 4) of the valid character at the start of `text`; 0 when the bytes there are invalid or, with
// fewer bytes than the first one announces, incomplete. Overlong forms, surrogates and values over U+10FFFF are
// invalid.
std::size_t utf8_character(std::string_view text);

// True when `text` is the beginning of a character that more bytes could complete.
bool utf8_incomplete(std::string_view text);

bool is_valid_utf8(std::string_view text);

}  // namespace chasqui
