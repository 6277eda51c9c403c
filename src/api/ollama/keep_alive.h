// For how long a model stays loaded after its last request, as Ollama's `keep_alive` says it. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace chasqui {

// A duration as Go writes it, "1h30m", "1.5s", "-1m", or a number of seconds. Nothing for other texts. More than a
// hundred years is cut.
std::optional<Duration> parse_keep_alive(std::string_view text);
// A number of seconds.
Duration keep_alive_of(double number);

}  // namespace chasqui
