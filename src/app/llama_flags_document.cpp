#include "app/llama_flags_document.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

#include "app/llama_flags.h"

namespace chasqui {
namespace {

constexpr const char* kHead = R"(# llama-server's flags

Every flag of llama-server, its variable, and what comes of it here; `chasqui config --llama-flags` prints this page.

- **ours**: a flag of Chasqui's own ([flags.md](flags.md)), which wins;
- **applied**: read by llama-server's own parser, with the effect that it has there, on what the table says;
- **written**: as a flag of ours;
- **taken**: without effect, and the log says why: no answer differs, and what it is to save is saved in another way;
- **refused**: with what to use instead, since answers, memory or times would differ without anybody noticing.

`LLAMA_ARG_NO_*` and underscores in long names are read as llama-server reads them. A flag wins over its variable.

| flag | variable | what comes of it |
|---|---|---|
)";

std::string code_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + '`';
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string what_comes(const LlamaFlag& flag) {
  const std::string why(flag.why);
  switch (flag.fate) {
    case FlagFate::taken: return "taken: " + why;
    case FlagFate::refused: return "refused: " + why;
    case FlagFate::written: return "written: `" + why + '`';
  }
  return why;
}

std::string row(const std::vector<std::string>& names, std::string_view variable, const std::string& what) {
  std::string out = "| " + code_list(names) + " | ";
  if (!variable.empty()) out += '`' + std::string(variable) + '`';
  return out + " | " + what + " |\n";
}

// The rows of one flag: those of its names that the table treats apart have rows of their own.
std::string rows_of(const CLI::App& serve, const LlamaOption& option) {
  std::vector<std::string> names = option.names;
  names.insert(names.end(), option.off_names.begin(), option.off_names.end());
  const LlamaFate fate = fate_of(serve, option);
  std::string what;
  switch (fate.kind) {
    case LlamaFate::Kind::ours: what = "ours: `" + fate.text + '`'; break;
    case LlamaFate::Kind::applied: what = "applied: " + fate.text; break;
    case LlamaFate::Kind::listed: return {};
    case LlamaFate::Kind::unknown: what = "unknown"; break;
  }
  return row(names, option.variable, what);
}

}  // namespace

std::string llama_flags_document(const CLI::App& serve) {
  std::string out = kHead;
  const LlamaOptions options;
  for (const LlamaOption& option : options.all()) out += rows_of(serve, option);
  for (const LlamaFlag& flag : llama_flags()) out += row(words_of(flag.names), flag.variable, what_comes(flag));
  return out;
}

}  // namespace chasqui
