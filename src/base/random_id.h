// Ids that clients see: unpredictable, made by the server. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace chasqui {

// `prefix` and 32 random letters and digits: "chatcmpl-4fGh…".
std::string random_id(std::string_view prefix);

}  // namespace chasqui
