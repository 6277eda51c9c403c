// The text of a file of settings that an operator writes by hand: --config and --models-preset. At start only.
#pragma once

#include <string>

#include "base/error.h"

namespace chasqui {

// Errors say why without the file's name: it cannot be read, has nothing in it or over 4 MiB.
Result<std::string> read_settings_text(const std::string& path);

}  // namespace chasqui
