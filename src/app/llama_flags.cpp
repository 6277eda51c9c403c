#include "app/llama_flags.h"

#include <algorithm>
#include <array>

#include "app/rpc_peers.h"

namespace chasqui {
namespace {

// llama-server's other names for options that are ours. Its short flags have several letters, which CLI11 would read as
// bundles of one-letter flags.
constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kOtherNames = {{
    {"-np", "--parallel"},
    {"-md", "--model-draft"},
    {"-ub", "--ubatch-size"},
    {"-tb", "--threads-batch"},
    {"-ngl", "--gpu-layers"},
    {"-fa", "--flash-attn"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-kvu", "--kv-unified"},
    {"-to", "--timeout"},
    {"-cram", "--cache-ram"},
    {"--n-predict", "--predict"},
    {"--n-gpu-layers", "--gpu-layers"},
    {"--ssl-cert-file", "--tls-cert"},
    {"--ssl-key-file", "--tls-key"},
    {"-rea", "--reasoning"},
    {"-fit", "--fit"},
    {"-fitt", "--fit-target"},
    {"-fitc", "--fit-ctx"},
    {"-ctxcp", "--ctx-checkpoints"},
    {"-cms", "--checkpoint-min-step"},
    {"-hf", "--hf-repo"},
    {"-hfr", "--hf-repo"},
    {"-hff", "--hf-file"},
    {"-hfd", "--hf-repo-draft"},
    {"-hfrd", "--hf-repo-draft"},
    {"-mm", "--mmproj"},
}};

std::string our_name(const std::string& name) {
  for (const auto& [other, ours] : kOtherNames) {
    if (name == other) return std::string(ours);
  }
  return name;
}

// `names` have blanks between them.
bool is_among(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

const LlamaFlag* find_flag(std::string_view name) {
  for (const LlamaFlag& flag : llama_flags()) {
    if (is_among(flag.names, name)) return &flag;
  }
  return nullptr;
}

// The option of ours of this name; one letter and its value may be one word.
const CLI::Option* our_option(const CLI::App& serve, const std::string& name) {
  return serve.get_option_no_throw(name);
}

bool has_variable(const CLI::App& serve, std::string_view variable) {
  const std::vector<const CLI::Option*> options = serve.get_options();
  return std::any_of(options.begin(), options.end(),
                     [&](const CLI::Option* option) { return option->get_envname() == variable; });
}

std::string refusal(std::string_view name, const LlamaFlag& flag) {
  return std::string(name) + " is llama-server's and not served here: " + std::string(flag.why);
}

std::string note(std::string_view name, const LlamaFlag& flag) {
  return std::string(name) + " has no effect: " + std::string(flag.why);
}

std::string option_of(std::string_view why) { return std::string(why.substr(0, why.find_first_of(" ="))); }

// Whether `argument` is an option, by this name or another of its names.
bool is_option(const CLI::App& serve, const std::string& argument, const std::string& name) {
  if (!argument.starts_with('-')) return false;
  const CLI::Option* option = our_option(serve, argument.substr(0, argument.find('=')));
  return option != nullptr && option == our_option(serve, name);
}

// Writes our arguments for one of its flags, an option and a word for it; % stands for its value. The last one counts.
void write_ours(const CLI::App& serve, const LlamaFlag& flag, const std::string& value, std::vector<std::string>& out) {
  const auto same = [&, option = option_of(flag.why)](const std::string& word) {
    return is_option(serve, word, option);
  };
  if (const auto before = std::ranges::find_if(out, same); before != out.end()) {
    const bool with_value = flag.why.find(' ') != std::string_view::npos && before->find('=') == std::string::npos;
    out.erase(before, before + (with_value && before + 1 != out.end() ? 2 : 1));
  }
  std::string_view rest = flag.why;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    out.push_back(word == "%" ? value : std::string(word));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// … or those of another flag of its own.
Result<void> write(const CLI::App& serve, LlamaOptions& options, const LlamaFlag& flag, const std::string& value,
                   std::vector<std::string>& out) {
  const std::string name = option_of(flag.why);
  if (our_option(serve, name) == nullptr) {
    const std::string written(flag.why.substr(flag.why.find(' ') + 1));
    return options.set(name, {&written, 1});
  }
  write_ours(serve, flag, value, out);
  return {};
}

// llama-server takes underscores in long names.
std::string with_dashes(std::string name) {
  if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
  return name;
}

// That which switches off what `variable` switches on; empty: there is none.
std::string off_variable(const std::string& variable) {
  const std::string_view prefix = "LLAMA_ARG_";
  return variable.starts_with(prefix) ? "LLAMA_ARG_NO_" + variable.substr(prefix.size()) : std::string();
}

// What llama-common reads of the environment: its variables, and those of what can be switched off.
Result<void> read_variables(const CLI::App& serve, ReadVariable variable, LlamaOptions& options) {
  for (const LlamaOption& option : options.all()) {
    if (option.variable.empty() || applied_to(option).empty() || has_variable(serve, option.variable)) continue;
    const char* value = variable(option.variable.c_str());
    const std::string off = off_variable(option.variable);
    if (!option.off_names.empty() && !off.empty() && variable(off.c_str()) != nullptr) value = "0";
    if (value == nullptr || *value == 0) continue;
    if (auto set = options.set_variable(option.variable, value); !set) return set;
  }
  return {};
}

bool says_off(std::string_view value) {
  return value == "0" || value == "false" || value == "off" || value == "disabled";
}

// The variables of the table, and those of what it switches off.
class TableVariables {
 public:
  TableVariables(const CLI::App& serve, ReadVariable variable, LlamaOptions& options, LlamaArguments& out)
      : serve_(serve), variable_(variable), options_(options), out_(out) {}

  void read() {
    for (const LlamaFlag& flag : llama_flags()) {
      if (out_.refusal) return;
      if (!flag.variable.empty() && !has_variable(serve_, flag.variable)) one(flag);
    }
    for (const LlamaOption& option : options_.all()) switch_off_ours(option);
  }

 private:
  void one(const LlamaFlag& flag) {
    const std::string name(flag.variable);
    if (const std::string off = off_variable(name); flag.values == 0 && !off.empty() && is_set(off)) {
      return switch_off(flag, off);
    }
    if (!is_set(name)) return;
    const std::string value = variable_(name.c_str());
    if (flag.values == 0 && says_off(value)) return switch_off(flag, name);
    if (flag.fate == FlagFate::refused && says_off(value)) return;
    apply(name, flag, value);
  }

  // Options of ours that have another name for being off know only the variable of the first.
  void switch_off_ours(const LlamaOption& option) {
    const std::string off = off_variable(option.variable);
    if (option.off_names.empty() || off.empty() || !is_set(off) || !has_variable(serve_, option.variable)) return;
    for (const std::string& name : option.names) {
      const std::string written = our_name(name) + "=false";
      if (our_option(serve_, our_name(name)) != nullptr) return write({{}, {}, 0, FlagFate::written, written}, {});
    }
  }

  bool is_set(const std::string& name) const {
    const char* value = variable_(name.c_str());
    return value != nullptr && *value != 0;
  }

  // As its other name would: --no-jinja for --jinja. Where there is none it is what holds without the variable.
  void switch_off(const LlamaFlag& flag, const std::string& variable) {
    for (std::string_view names = flag.names; !names.empty();) {
      const std::string_view name = names.substr(0, names.find(' '));
      names.remove_prefix(std::min(name.size() + 1, names.size()));
      if (!name.starts_with("--")) continue;
      const std::string off = "--no-" + std::string(name.substr(2));
      if (our_option(serve_, off) != nullptr) return write({{}, {}, 0, FlagFate::written, off}, {});
      if (const LlamaFlag* other = find_flag(off)) return apply(variable, *other, {});
    }
  }

  void apply(const std::string& variable, const LlamaFlag& flag, const std::string& value) {
    if (flag.fate == FlagFate::refused) out_.refusal = refusal(variable, flag);
    if (flag.fate == FlagFate::taken) out_.notes.push_back(note(variable, flag));
    if (flag.fate == FlagFate::written) write(flag, value);
  }

  // A flag wins over its variable.
  void write(const LlamaFlag& flag, const std::string& value) {
    const std::string option = option_of(flag.why);
    const auto same = [&](const std::string& word) { return is_option(serve_, word, option); };
    if (std::ranges::any_of(out_.arguments, same)) return;
    if (auto written = chasqui::write(serve_, options_, flag, value, out_.arguments); !written) {
      out_.refusal = written.error().message;
    }
  }

  const CLI::App& serve_;
  const ReadVariable variable_;
  LlamaOptions& options_;
  LlamaArguments& out_;
};

// In the form of ours, or untouched when it is no flag of llama-server's either.
class Translation {
 public:
  Translation(const CLI::App& serve, const std::vector<std::string>& arguments, LlamaOptions& options)
      : serve_(serve), in_(arguments), options_(options) {}

  LlamaArguments translate() {
    while (at_ < in_.size() && !out_.refusal) one();
    return std::move(out_);
  }

 private:
  void one() {
    const std::string word = in_[at_++];
    if (word.size() < 2 || word[0] != '-') return out_.arguments.push_back(word);
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = our_name(with_dashes(word.substr(0, equals)));
    const bool joined = equals != std::string::npos;
    if (const CLI::Option* option = our_option(serve_, name)) {
      out_.arguments.push_back(joined ? name + word.substr(equals) : name);
      if (!joined) value_of_ours(*option);
      return;
    }
    const LlamaFlag* flag = find_flag(name);
    if (flag == nullptr) {
      const LlamaOption* option = options_.find(name);
      if (option == nullptr || applied_to(*option).empty()) return out_.arguments.push_back(word);
      const std::vector<std::string> joined_value = {joined ? word.substr(equals + 1) : ""};
      const auto set = options_.set(name, joined ? joined_value : values_of(option->values));
      if (!set) out_.refusal = set.error().message;
      return;
    }
    const std::string value = joined ? word.substr(equals + 1) : value_of(*flag);
    if (flag->fate == FlagFate::refused) out_.refusal = refusal(name, *flag);
    if (flag->fate == FlagFate::taken) out_.notes.push_back(note(name, *flag));
    if (flag->fate != FlagFate::written) return;
    if (auto written = write(serve_, options_, *flag, value, out_.arguments); !written) {
      out_.refusal = written.error().message;
    }
  }

  // What belongs to an option of ours is never looked at, whatever it looks like. Once flash attention was a flag.
  void value_of_ours(const CLI::Option& option) {
    if (option.get_items_expected_max() == 0) return;
    const bool next_is_flag = at_ == in_.size() || in_[at_].starts_with("-");
    if (option.check_lname("flash-attn") && next_is_flag) return out_.arguments.push_back("on");
    if (at_ < in_.size()) out_.arguments.push_back(in_[at_++]);
  }

  std::string value_of(const LlamaFlag& flag) {
    const std::vector<std::string> values = values_of(flag.values);
    return values.empty() ? std::string() : values.back();
  }

  std::vector<std::string> values_of(int count) {
    std::vector<std::string> values;
    for (; count > 0 && at_ < in_.size(); --count) values.push_back(in_[at_++]);
    return values;
  }

  const CLI::App& serve_;
  const std::vector<std::string>& in_;
  LlamaOptions& options_;
  std::size_t at_ = 0;
  LlamaArguments out_;
};

void finish(LlamaOptions& options, ReadVariable variable, LlamaArguments& result) {
  const auto found = find_devices(options, any_network(result.arguments, variable("CHASQUI_RPC_PUBLIC")));
  const auto finished = found ? options.finish() : found;
  if (!finished) result.refusal = finished.error().message;
  result.may_pass = !found && found.error().code == ErrorCode::unavailable;
}

}  // namespace

std::string_view applied_to(const LlamaOption& option) {
  for (const AppliedFlags& applied : applied_flags()) {
    const auto named = [&](const std::string& name) { return is_among(applied.names, name); };
    if (std::ranges::any_of(option.names, named)) return applied.what;
  }
  return {};
}

LlamaFate fate_of(const CLI::App& serve, const LlamaOption& option) {
  for (const std::string& name : option.names) {
    if (const CLI::Option* ours = our_option(serve, our_name(name))) {
      return {LlamaFate::Kind::ours, ours->get_lnames().empty() ? name : "--" + ours->get_lnames().front()};
    }
  }
  if (std::ranges::any_of(option.names, [](const std::string& name) { return find_flag(name) != nullptr; })) {
    return {LlamaFate::Kind::listed, {}};
  }
  const std::string what(applied_to(option));
  return {what.empty() ? LlamaFate::Kind::unknown : LlamaFate::Kind::applied, what};
}

std::optional<KeyedFlag> flag_of_key(const CLI::App& serve, const LlamaOptions& options, const std::string& key) {
  // What has a value is the same by all its names; of the others one may say the contrary.
  const auto of_ours = [](const CLI::Option& option, const std::string& name) {
    if (option.get_items_expected_max() == 0) return KeyedFlag{name, 0};
    return KeyedFlag{option.get_lnames().empty() ? name : "--" + option.get_lnames().front(), 1};
  };
  for (const std::string dashes : {"--", "-"}) {
    const std::string name = our_name(with_dashes(dashes + key));
    if (const CLI::Option* const option = our_option(serve, name)) return of_ours(*option, name);
    if (const LlamaFlag* const flag = find_flag(name)) return KeyedFlag{name, flag->values};
    const LlamaOption* const option = options.find(name);
    if (option == nullptr || applied_to(*option).empty()) continue;
    return KeyedFlag{option->values == 0 ? name : option->names.front(), option->values};
  }
  for (const CLI::Option* const option : serve.get_options()) {
    if (option->get_envname() == key) return of_ours(*option, "--" + option->get_lnames().front());
  }
  for (const LlamaFlag& flag : llama_flags()) {
    if (flag.variable == key) return KeyedFlag{std::string(flag.names.substr(0, flag.names.find(' '))), flag.values};
  }
  const LlamaOption* const option = options.find_variable(key);
  if (option != nullptr && !applied_to(*option).empty()) return KeyedFlag{option->names.front(), option->values};
  return std::nullopt;
}

std::vector<std::string> with_long_names(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) argument = our_name(argument);
  return arguments;
}

LlamaArguments from_llama_server(const CLI::App& serve, const std::vector<std::string>& arguments,
                                 ReadVariable variable) {
  const auto options = std::make_shared<LlamaOptions>();
  if (auto read = read_variables(serve, variable, *options); !read) return {{}, {}, {}, read.error().message};
  LlamaArguments result = Translation(serve, arguments, *options).translate();
  TableVariables(serve, variable, *options, result).read();
  if (!result.refusal) finish(*options, variable, result);
  result.options = options;
  return result;
}

void accept_llama_words(CLI::App& serve) {
  for (CLI::Option* option : serve.get_options()) {  // a flag that comes twice holds as it comes last
    const bool one = option->get_items_expected_max() == 1;
    if (one && option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  const auto replace = [&serve](const char* name, std::vector<std::string> words, const char* ours) {
    CLI::Option* option = serve.get_option_no_throw(name);
    if (option == nullptr) return;
    const auto change = [words = std::move(words), ours = std::string(ours)](std::string& value) {
      if (std::find(words.begin(), words.end(), value) != words.end()) value = ours;
      return std::string();
    };
    option->transform(CLI::Validator(change, ""));
  };
  replace("--threads", {"-1"}, "0");
  replace("--threads-batch", {"-1"}, "0");
  replace("--parallel", {"-1"}, "0");
  replace("--gpu-layers", {"all", "auto"}, "-1");
  replace("--flash-attn", {"1", "true", "enabled"}, "on");
  replace("--flash-attn", {"0", "false", "disabled"}, "off");
  replace("--flash-attn", {"-1"}, "auto");
  replace("--fit", {"1", "true", "enabled"}, "on");
  replace("--fit", {"0", "false", "disabled"}, "off");
  replace("--log-level", {"0", "1"}, "error");
  replace("--log-level", {"2"}, "warning");
  replace("--log-level", {"3"}, "info");
  replace("--log-level", {"4", "5"}, "debug");
}

}  // namespace chasqui
