// How llama-server's own command line is read. Everything that both servers have is an option of ours and never
// comes here; the rest stands in one table: taken without effect (and said so in the log), written as an option of
// ours, or refused with a word about what to use instead.
//
// The rule: a flag is taken when it only asks for speed, memory or something that is always so here, or when each
// request may say it. It is refused when answers would differ, or something would be missing, without anybody noticing.
// An option of ours with the same name always wins. Runs once, before the command line is read; main thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace chasqui {

enum class FlagFate { taken, refused, written };

struct LlamaFlag {
  std::string_view names;  // with blanks between them
  std::string_view variable;
  int values;  // arguments that belong to it
  FlagFate fate;
  std::string_view why;  // taken: why nothing comes of it; refused: what to use; written: our arguments, % for its own
};

std::span<const LlamaFlag> llama_flags();

struct LlamaArguments {
  std::vector<std::string> arguments;  // as our own options take them
  std::vector<std::string> notes;      // for the log: one for each flag that has no effect
  std::optional<std::string> refusal;
};

// Where the variables come from; tests have their own.
using ReadVariable = const char* (*)(const char* name);

// `arguments` are those behind the program's name, of `serve` or a command with the same options, which it has already.
LlamaArguments from_llama_server(const CLI::App& serve, const std::vector<std::string>& arguments,
                                 ReadVariable variable);

// For the other commands: only names of options are changed.
std::vector<std::string> with_long_names(std::vector<std::string> arguments);

// llama-server's words for numbers that we write otherwise: -1 threads, `all` layers.
void accept_llama_words(CLI::App& serve);

}  // namespace chasqui
