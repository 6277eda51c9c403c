// Which models `chasqui serve` is to serve: each --model and --hf-repo with its --alias, or each section of
// --models-preset with its flags; and those of --models-dir. At start only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/preset_file.h"
#include "base/error.h"

namespace chasqui {

// What a section comes to on the command line.
struct SectionArguments {
  std::vector<std::string> arguments;
  std::vector<std::string> notes;  // for the log: one for each key that has no effect
  std::map<std::string, int> lines;  // of the file, by the flag
  bool at_start = false;             // load-on-startup
};

// `all` holds where the section does not say. Errors name the key and its line; a flag of the whole server has no
// effect.
Result<SectionArguments> section_arguments(const CLI::App& serve, const PresetSection& all,
                                           const PresetSection& section);

// The configuration of a server whose command line had these arguments before all others. Errors have the flag as their
// field.
using ReadWith = std::function<Result<ServeConfig>(const SectionArguments&)>;

// Fills in config.models. Errors name the flag.
Result<void> list_models(const CLI::App& serve, ServeConfig& config, const ReadWith& read_with);

}  // namespace chasqui
