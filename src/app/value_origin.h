// Where the value of an option came from that was not typed, for messages about it. Pure; at start only.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui {

// By the option with its dashes: "from LLAMA_ARG_PORT", "chasqui.toml, line 7". What was typed, or not said, is
// missing.
using ValueOrigins = std::map<std::string, std::string>;

// " (from LLAMA_ARG_PORT)"; empty: it was typed.
std::string origin_note(const ValueOrigins& origins, const std::string& option);

// The error, whose field may be an option, with that note behind its message.
Error with_origin(Error error, const ValueOrigins& origins);

// The option that a message of CLI11's or of llama-common's is about: "--port: Value http not in range 0 to 65535".
// Empty: none.
std::string option_in(std::string_view message);

}  // namespace chasqui
