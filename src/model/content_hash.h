// SHA-256 of what clients send, where nothing else may be found in its place. Pure; any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace chasqui {

using ContentHash = std::array<unsigned char, 32>;

ContentHash content_hash(std::string_view bytes);
std::string in_hex(const ContentHash& hash);

}  // namespace chasqui
