// What `chasqui config --llama-flags` prints, which is docs/llama_flags.md: every flag of llama-server's and what comes
// of it, as a table in Markdown. Pure; at start only.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace chasqui {

std::string llama_flags_document(const CLI::App& serve);

}  // namespace chasqui
