// How llama-server's own command line is read. Everything that both servers have is an option of ours and never
// comes here. Of the rest most go to llama-common's own parser (model/llama_options) and have the effect that they have
// there; some stand in a table: taken without effect (and said so in the log), written as an option of ours, or
// refused with a word about what to use instead.
//
// The rule: a flag is taken where no answer differs without it and what it is to save is saved in another way. It is
// refused where answers, memory or times would differ, without anybody noticing. An option of ours with the same name
// always wins. Runs once, before the command line is read; main thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "model/llama_options.h"

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

// Flags that llama-common reads, by one of their names each, with blanks between them; and what they change.
struct AppliedFlags {
  std::string_view names;
  std::string_view what;
};
std::span<const AppliedFlags> applied_flags();
// What a row of llama-common's table changes here; empty: nothing reads it.
std::string_view applied_to(const LlamaOption& option);

// What comes of a row of llama-common's table.
struct LlamaFate {
  enum class Kind { ours, applied, listed, unknown };
  Kind kind = Kind::unknown;
  std::string text;  // the option of ours; what is changed
};
LlamaFate fate_of(const CLI::App& serve, const LlamaOption& option);

// A flag as a file names it, without dashes, by one of its names or its variable.
struct KeyedFlag {
  std::string flag;  // as the command line has it
  int values = 0;    // arguments that belong to it
};
std::optional<KeyedFlag> flag_of_key(const CLI::App& serve, const LlamaOptions& options, const std::string& key);

struct LlamaArguments {
  std::vector<std::string> arguments;  // as our own options take them
  std::vector<std::string> notes;      // for the log: one for each flag that has no effect
  LlamaOptionsPtr options;             // what llama-common has read
  std::optional<std::string> refusal;
  bool may_pass = false;  // … which is another machine's, and may be gone at the next start
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
