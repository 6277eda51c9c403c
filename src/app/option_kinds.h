// Options of the command line that several groups have: one of a few words, a time in seconds. Part of app/config.
#pragma once

#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "base/clock.h"

namespace chasqui {

// An option with one of a few words as its value.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value, const std::map<std::string, Value>& words,
                        const std::string& help) {
  std::string allowed;
  for (const auto& [word, unused] : words) allowed += (allowed.empty() ? "" : "|") + word;
  return app
      .add_option_function<std::string>(
          name, [&value, &words](const std::string& word) { value = words.at(word); }, help)
      ->check(CLI::IsMember(words).description(""))
      ->type_name(allowed);
}

// Seconds, stored as a Duration.
inline CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& value, const std::string& help) {
  return app
      .add_option_function<double>(
          name, [&value](double s) { value = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s)); },
          help)
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS");
}

}  // namespace chasqui
