// A TOML file of settings: keys with a text, a number, a boolean or a list of these, at the top or in one section.
// Values come as texts, as if they had been typed. At start only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct TomlItem {
  std::string key;
  std::vector<std::string> values;
  std::size_t line = 0;  // where its value begins, from 1
};

// `section` is the only one that there may be. Errors name the line, and the key.
Result<std::vector<TomlItem>> read_toml(std::string_view text, std::string_view section);

}  // namespace chasqui
