// What `chasqui config --flags` prints, which is docs/flags.md: every flag of serve as a table in Markdown. Pure; at
// start only.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace chasqui {

std::string flags_document(const CLI::App& command);

}  // namespace chasqui
