// What `chasqui config --limits` prints: base/limits.h as a table in Markdown, with what the settings say. With none of
// them it is docs/limits.md.
#pragma once

#include <string>

#include "app/config_file.h"

namespace CLI {
class App;
}

namespace chasqui {

std::string limits_document(const CLI::App& command, const Settings& settings);
// The same for programs: an object of objects.
std::string limits_json(const CLI::App& command, const Settings& settings);

}  // namespace chasqui
