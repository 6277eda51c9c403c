// What `format` asks of a string, as regular expressions: narrower than the formats, so that what fits one has the
// other. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace chasqui {

// None: unknown, or no regular language. Empty: it asks for nothing.
std::optional<std::string_view> format_expression(std::string_view format);

}  // namespace chasqui
