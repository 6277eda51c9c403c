// SHA-256, for what is kept instead of a secret and for telling bodies apart. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace chasqui::net {

using Sha256 = std::array<std::uint8_t, 32>;

// Of the parts, one after the other.
Sha256 sha256(std::initializer_list<std::string_view> parts);

// Takes the same time whatever they hold.
bool equal_in_constant_time(const Sha256& a, const Sha256& b);

}  // namespace chasqui::net
