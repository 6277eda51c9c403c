#include "app/help_formatter.h"

#include <algorithm>
#include <array>
#include <regex>
#include <utility>

namespace chasqui {
namespace {

// In the order of the help.
constexpr std::array kMostUsed = {"--model",        "--hf-repo",  "--host",     "--port",    "--api-key",
                                  "--api-key-file", "--ctx-size", "--parallel", "--threads", "--cache-disk"};

bool is_most_used(const CLI::Option* option) {
  return std::ranges::any_of(kMostUsed, [option](const char* name) { return option->check_name(name); });
}

}  // namespace

OptionValue option_value(const CLI::Option& option) {
  // CLI11 names each check after its type, "N:FLOAT in [0 - 86400]:FLOAT in [1 - 86400]"; the last one is the
  // narrowest.
  static const std::regex kRanges(R"((?::?[A-Z]+ in \[([^ \]]+) - ([^ \]]+)\])+)");
  // As a check of ours says it: "N:0 or 64 to 4096".
  static const std::regex kZeroOr(R"(:(0 or [0-9]+ to [0-9]+)$)");
  OptionValue out{option.get_type_name(), "", option.get_default_str()};
  // A list, as CLI11 writes it.
  if (out.standard.starts_with('[') && out.standard.ends_with(']')) {
    out.standard = out.standard.substr(1, out.standard.size() - 2);
  }
  std::smatch range;
  const std::string type = out.name;
  if (std::regex_search(type, range, kRanges)) {
    out.range = range[1].str() + " to " + range[2].str();
    out.name = range.prefix().str() + range.suffix().str();
  } else if (std::regex_search(type, range, kZeroOr)) {
    out.range = range[1].str();
    out.name = range.prefix().str();
  }
  return out;
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  // Which of two flags says no is seen from its name.
  static const std::regex kValue(R"(\{(?:true|false)\})");
  return std::regex_replace(CLI::Formatter::make_option_name(option, is_positional), kValue, "");
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  const std::string type = option->get_type_name();
  const std::string said = option->get_default_str();
  const auto [name, range, standard] = option_value(*option);
  const std::string shown = (type.empty() ? "" : " " + type) + (said.empty() ? "" : "=" + said);
  if (shown.empty() || !text.starts_with(shown)) return text;
  std::string notes = range;
  if (!standard.empty()) notes += (notes.empty() ? "default: " : "; default: ") + standard;
  const std::string rest = text.substr(shown.size());
  return (name.empty() ? "" : " " + name) + (notes.empty() ? "" : " (" + notes + ")") + rest;
}

std::string ServeHelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::vector<const CLI::Option*> options;
  for (const char* const each : kMostUsed) {
    if (const CLI::Option* const option = app->get_option_no_throw(each)) options.push_back(option);
  }
  // Not by our own, which leaves them out.
  return HelpFormatter::make_usage(app, std::move(name)) + HelpFormatter::make_group("Most used", false, options) +
         '\n';
}

std::string ServeHelpFormatter::make_group(std::string group, bool is_positional,
                                           std::vector<const CLI::Option*> options) const {
  std::erase_if(options, is_most_used);
  if (options.empty()) return {};
  return HelpFormatter::make_group(std::move(group), is_positional, std::move(options));
}

}  // namespace chasqui
