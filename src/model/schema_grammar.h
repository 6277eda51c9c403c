// A JSON Schema as a grammar, by llama-common's converter, which silently ignores what it does not know: the caller
// has looked at the schema first (api/schema_check). Any thread; slow for large schemas.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui {

// Errors name `json_schema`. The numbers and strings of the grammar are narrower than the converter's: a number's
// exponent has two digits, so that it is finite, and an escape is no half of a surrogate pair.
Result<std::string> grammar_of_schema(const std::string& schema);

// Why the converter refuses the parameters of a tool, which are not checked as schemas of answers are: what it does not
// know is left out. Errors say what is wrong without naming a field.
Result<void> check_tool_schema(const std::string& schema);

}  // namespace chasqui
