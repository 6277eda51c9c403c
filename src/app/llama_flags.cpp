#include "app/llama_flags.h"

#include <algorithm>
#include <array>

namespace chasqui {
namespace {

// llama-server's other names for options that are ours. Its short flags have several letters, which CLI11 would read as
// bundles of one-letter flags.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kOtherNames = {{
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
    {"-sps", "--slot-prompt-similarity"},
    {"-ag", "--agent"},
    {"--ssl-cert-file", "--tls-cert"},
    {"--ssl-key-file", "--tls-key"},
    {"-rea", "--reasoning"},
    {"-fitt", "--fit-target"},
    {"-fitc", "--fit-ctx"},
    {"-ctxcp", "--ctx-checkpoints"},
    {"-cms", "--checkpoint-min-step"},
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

// Writes our arguments for one of its flags, an option and a word for it; % stands for its value. The last one counts.
void write_ours(const LlamaFlag& flag, const std::string& value, std::vector<std::string>& out) {
  const std::string option(flag.why.substr(0, flag.why.find(' ')));
  if (const auto before = std::find(out.begin(), out.end(), option); before != out.end()) {
    out.erase(before, before + (before + 1 == out.end() ? 1 : 2));
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
  const std::size_t end = flag.why.find(' ');
  const std::string name(flag.why.substr(0, end));
  if (our_option(serve, name) == nullptr) {
    const std::string written(flag.why.substr(end + 1));
    return options.set(name, {&written, 1});
  }
  write_ours(flag, value, out);
  return {};
}

// llama-server takes underscores in long names.
std::string with_dashes(std::string name) {
  if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
  return name;
}

// What llama-common reads of the environment: its variables, and those of what can be switched off.
Result<void> read_variables(const CLI::App& serve, ReadVariable variable, LlamaOptions& options) {
  const std::string_view prefix = "LLAMA_ARG_";
  for (const LlamaOption& option : options.all()) {
    if (option.variable.empty() || applied_to(option).empty() || has_variable(serve, option.variable)) continue;
    const char* value = variable(option.variable.c_str());
    if (!option.off_names.empty() && option.variable.starts_with(prefix)) {
      const std::string off = "LLAMA_ARG_NO_" + option.variable.substr(prefix.size());
      if (variable(off.c_str()) != nullptr) value = "0";
    }
    if (value == nullptr || *value == 0) continue;
    if (auto set = options.set_variable(option.variable, value); !set) return set;
  }
  return {};
}

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

std::vector<std::string> with_long_names(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) argument = our_name(argument);
  return arguments;
}

LlamaArguments from_llama_server(const CLI::App& serve, const std::vector<std::string>& arguments,
                                 ReadVariable variable) {
  const auto options = std::make_shared<LlamaOptions>();
  if (auto read = read_variables(serve, variable, *options); !read) return {{}, {}, {}, read.error().message};
  LlamaArguments result = Translation(serve, arguments, *options).translate();
  for (const LlamaFlag& flag : llama_flags()) {
    if (result.refusal) break;
    if (flag.variable.empty() || has_variable(serve, flag.variable)) continue;
    const char* value = variable(std::string(flag.variable).c_str());
    if (value == nullptr || *value == 0) continue;
    const bool off = std::string_view(value) == "0" || std::string_view(value) == "false";
    if (flag.fate == FlagFate::refused && !off) result.refusal = refusal(flag.variable, flag);
    if (flag.fate == FlagFate::taken) result.notes.push_back(note(flag.variable, flag));
    if (flag.fate != FlagFate::written || off) continue;
    if (auto written = write(serve, *options, flag, value, result.arguments); !written) {
      result.refusal = written.error().message;
    }
  }
  if (auto finished = options->finish(); !finished && !result.refusal) result.refusal = finished.error().message;
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
  replace("--log-level", {"0", "1"}, "error");
  replace("--log-level", {"2"}, "warning");
  replace("--log-level", {"3"}, "info");
  replace("--log-level", {"4", "5"}, "debug");
}

}  // namespace chasqui
