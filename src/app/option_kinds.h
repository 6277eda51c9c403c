// Options of the command line that several groups have: one of a few words, a time in seconds. Part of app/config.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
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

// A flag that turns `value` off, and so does its variable when it is set to 1. CLI11's own "!--flag" takes what the
// variable says for the value itself, so that it would turn on what it names. Its functions of flags throw at other
// words, so these are refused before.
inline CLI::Option* add_off_flag(CLI::App& app, const std::string& name, bool& value, const std::string& help) {
  const auto check = [](const std::string& text) {
    try {
      (void)CLI::detail::to_flag_value(text);
      return std::string();
    } catch (const std::logic_error&) {  // both that it throws: of no number, and of a large one
      return "must be true or false; got " + text;
    }
  };
  return app
      .add_flag_function(
          name, [&value](std::int64_t given) { value = given <= 0; }, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->check(check);
}

// Seconds, stored as a Duration.
inline CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& value, const std::string& help) {
  return app
      .add_option_function<double>(
          name, [&value](double s) { value = from_seconds(s); },
          help)
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS");
}

}  // namespace chasqui
