#include "app/help_formatter.h"

#include <regex>

namespace chasqui {

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  const std::string type = option->get_type_name();
  const std::string standard = option->get_default_str();
  const std::string shown = " " + type + (standard.empty() ? "" : "=" + standard);
  if (type.empty() || !text.starts_with(shown)) return text;
  // CLI11 names each check after its type, "N:FLOAT in [0 - 86400]:FLOAT in [1 - 86400]"; the last one is the
  // narrowest.
  static const std::regex kRanges(R"((?::?[A-Z]+ in \[([^ \]]+) - ([^ \]]+)\])+)");
  std::smatch range;
  std::string name = type;
  std::string notes;
  if (std::regex_search(type, range, kRanges)) {
    notes = range[1].str() + " to " + range[2].str();
    name = range.prefix().str() + range.suffix().str();
  }
  if (!standard.empty()) notes += (notes.empty() ? "default: " : "; default: ") + standard;
  const std::string rest = text.substr(shown.size());
  return (name.empty() ? "" : " " + name) + (notes.empty() ? "" : " (" + notes + ")") + rest;
}

}  // namespace chasqui
