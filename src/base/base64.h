// Bytes written as letters (RFC 4648), as JSON carries files. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace chasqui {

// Both alphabets, with or without padding at the end, and nothing else: no blanks, no bits that no byte has. nullopt:
// `text` is something else. A megabyte takes less than a millisecond.
std::optional<std::string> decode_base64(std::string_view text);

std::string encode_base64(std::string_view bytes);

}  // namespace chasqui
