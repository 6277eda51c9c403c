#include "app/config_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>

#include "app/environment.h"
#include "app/settings_text.h"
#include "app/toml_file.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

constexpr const char* kFileOption = "config";

std::string environment(const std::string& name) { return name.empty() ? "" : variable_text(name.c_str()); }

std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? std::string() : option.get_lnames().front();
}

const std::string kHidden = "(hidden)";

// Keys, and addresses with a password in them.
bool is_secret(const std::string& name, const std::string& value) {
  constexpr std::array<std::string_view, 3> kAddresses = {"shared-store", "session-leases", "batch-queue"};
  const bool is_address = std::ranges::find(kAddresses, name) != kAddresses.end();
  return name == "api-key" || (is_address && value.find('@') != std::string::npos);
}

// The others say something and do nothing.
bool is_setting(const std::string& name) {
  return name != "help" && name != "version" && name != "json" && name != "limits";
}

Error bad_file(const std::string& file, const std::string& why) {
  return invalid_field("--config", "--config " + file + ": " + why);
}

// llama-server's and TOML's habits both: ctx_size and ctx-size.
std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// As one argument: what a list has, with commas.
std::string as_argument(const std::string& name, const std::vector<std::string>& values) {
  std::string out = "--" + name;
  for (std::size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "=" : ",") + values[i];
  return out;
}

Result<std::vector<TomlItem>> read_file(const std::string& path, const CLI::App& command) {
  auto text = read_settings_text(path);
  if (!text) return bad_file(path, text.error().message);
  auto items = read_toml(*text, "serve");
  if (!items) return bad_file(path, items.error().message);
  std::map<const CLI::Option*, std::string> said;
  for (TomlItem& item : *items) {
    const std::string name = option_name(item.key);
    const CLI::Option* option = command.get_option_no_throw("--" + name);
    const std::string line = "line " + std::to_string(item.line) + ": ";
    if (option == nullptr || name == kFileOption || !is_setting(name)) {
      return bad_file(path, line + "there is no setting \"" + item.key + "\"; chasqui config shows all of them");
    }
    if (!said.emplace(option, item.key).second) {
      return bad_file(path, line + "\"" + item.key + "\" is said twice, also as \"" + said[option] + "\"");
    }
    item.key = name;
  }
  return items;
}

// Each value is a flag of its own, with commas that mean something else.
bool is_repeated(const std::string& name) { return name == "model" || name == "alias" || name == "hf-repo"; }

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

// --no-mmap is written true and stored as false.
bool is_turned(const CLI::Option& option) {
  const auto& names = option.get_fnames();
  return std::find(names.begin(), names.end(), long_name(option)) != names.end();
}

std::string value_of(const CLI::Option& option) {
  if (option.count() == 0) {
    const std::string standing = option.get_default_str();
    if (is_flag(option) && standing.empty()) return "false";
    return standing == "[]" ? std::string() : standing;  // what CLI11 makes of an empty list
  }
  if (is_flag(option) && is_turned(option)) return option.results().front() == "false" ? "true" : "false";
  std::string out;
  for (const std::string& value : option.results()) out += (out.empty() ? "" : ",") + value;
  return out;
}

std::string toml(const std::string& value) {
  const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos && value[0] != '0';
  if (number || value == "0" || value == "-1" || value == "true" || value == "false") return value;
  std::string out;
  append_json_string(out, value);  // a basic string of TOML is one of JSON
  return out;
}

std::string toml_list(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ", ") + toml(value);
  return "[" + out + "]";
}

const char* word(Origin origin) {
  switch (origin) {
    case Origin::flag: return "flag";
    case Origin::environment: return "environment";
    case Origin::file: return "file";
  }
  return "";
}

struct Setting {
  std::string name, value, group;
  std::string origin;             // with its name, where it has one
  std::vector<std::string> list;  // instead of the value, of a flag that was given several times
};

std::vector<Setting> settings_of(const CLI::App& command, const Settings& settings) {
  std::vector<Setting> out;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = long_name(*option);
    if (name.empty() || !is_setting(name)) continue;
    Setting setting{name, value_of(*option), option->get_group(), "default", {}};
    if (is_repeated(name) && option->count() > 1) setting.list = option->results();
    if (const auto found = settings.origins.find(name); found != settings.origins.end()) {
      setting.origin = word(found->second);
      if (found->second == Origin::environment) setting.origin += " " + option->get_envname();
      if (found->second == Origin::file) setting.origin += " " + settings.file;
    }
    if (is_secret(name, setting.value) && !setting.value.empty()) setting.value = kHidden;
    out.push_back(std::move(setting));
  }
  return out;
}

}  // namespace

Result<Settings> read_settings(CLI::App& root, CLI::App& command, std::vector<std::string> arguments) {
  Settings out;
  out.arguments = arguments;
  // Without the environment, what counts is on the command line.
  std::map<CLI::Option*, std::string> variables;
  for (CLI::Option* option : command.get_options()) {
    variables[option] = option->get_envname();
    option->envname("");
  }
  std::reverse(arguments.begin(), arguments.end());
  bool parsed = true;
  try {
    root.parse(arguments);
  } catch (const CLI::ArgumentMismatch&) {
    return out;  // an option without its value, behind which nothing was read; the next parser will say it
  } catch (const CLI::ParseError&) {
    parsed = false;  // help, or a mistake, unless a variable has one that the next parser finds before
  }
  for (const auto& [option, variable] : variables) {
    if (option->count() > 0) {
      out.origins[long_name(*option)] = Origin::flag;
    } else if (!environment(variable).empty()) {
      out.origins[long_name(*option)] = Origin::environment;
    }
  }
  const CLI::Option* file = command.get_option_no_throw("--config");
  if (!parsed || file == nullptr) return out;
  out.file = file->count() > 0 ? file->results().front() : environment(variables[const_cast<CLI::Option*>(file)]);
  if (out.file.empty()) return out;
  auto items = read_file(out.file, command);
  if (!items) return items.error();
  for (const TomlItem& item : *items) {
    const std::string name = long_name(*command.get_option_no_throw("--" + item.key));
    // A list of nothing says as much as no line; as an argument it would be a flag that takes the next one as its
    // value.
    if (item.values.empty() || out.origins.contains(name)) continue;
    out.origins[name] = Origin::file;
    out.lines[name] = item.line;
    if (!is_repeated(name)) out.arguments.push_back(as_argument(item.key, item.values));
    for (const std::string& value : item.values) {
      if (is_repeated(name)) out.arguments.push_back(as_argument(item.key, {value}));
    }
  }
  return out;
}

ValueOrigins value_origins(const CLI::App& command, const Settings& settings) {
  ValueOrigins out;
  for (const CLI::Option* option : command.get_options()) {
    const std::string first = long_name(*option);
    const auto found = settings.origins.find(first);
    if (found == settings.origins.end() || found->second == Origin::flag) continue;
    const bool of_file = found->second == Origin::file;
    const std::string origin = of_file ? settings.file + ", line " + std::to_string(settings.lines.at(first))
                                       : "from " + option->get_envname();
    for (const std::string& name : option->get_lnames()) out["--" + name] = origin;
  }
  return out;
}

std::string settings_text(const CLI::App& command, const Settings& settings) {
  std::string out;
  std::string group;
  for (const Setting& setting : settings_of(command, settings)) {
    if (setting.name == kFileOption) continue;
    if (setting.group != group) {
      group = setting.group;
      out += (out.empty() ? "# " : "\n# ") + group + '\n';
    }
    // An option that was not given stays a comment, so that a file made of this leaves it open.
    const bool open = setting.origin == "default" || setting.value == kHidden;
    std::string line = (open ? "# " : "") + setting.name + " = ";
    line += setting.list.empty() ? toml(setting.value) : toml_list(setting.list);
    if (setting.value.empty()) line = "# " + setting.name + " is not set";
    // A default in words is no value: as a line it could not be taken.
    const bool in_words = setting.origin == "default" && setting.value.find(' ') != std::string::npos;
    if (in_words) line = "# " + setting.name + " is " + setting.value;
    line.resize(std::max<std::size_t>(line.size(), 40), ' ');
    out += line + "  # " + setting.origin + '\n';
  }
  return out;
}

std::string settings_json(const CLI::App& command, const Settings& settings) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  for (const Setting& setting : settings_of(command, settings)) {
    if (setting.name == kFileOption) continue;
    w.begin_object(setting.name);
    if (setting.list.empty()) {
      w.field("value", setting.value);
    } else {
      w.begin_array("value");
      for (const std::string& value : setting.list) w.string(value);
      w.end_array();
    }
    w.field("origin", setting.origin);
    w.end_object();
  }
  w.end_object();
  return out + "\n";
}

}  // namespace chasqui
