// A TOML file of settings: keys with a text, a number, a boolean or a list of these, at the top or in one section.
// Values come as texts, as if they had been typed. At start only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct TomlItem {
  std::string key;
  std::vector<std::string> values;
};

// `section` is the only one that there may be. Errors name the key, or the line that is no TOML.
Result<std::vector<TomlItem>> read_toml(std::string_view text, std::string_view section);

}  // namespace chasqui
