// A time as most formats write it: 2023-11-14T22:13:20Z. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace chasqui {

std::string rfc3339(std::int64_t unix_seconds);

}  // namespace chasqui
