// One GBNF grammar that allows what either of two does. Pure; any thread; linear in the texts.
#pragma once

#include <string>
#include <string_view>

namespace chasqui {

// REQUIRES: both define `root`. Rules keep their names behind a prefix, so that equal ones do not meet.
std::string grammar_of_either(std::string_view first, std::string_view second);

}  // namespace chasqui
