#include "app/model_list.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <string_view>

#include "app/llama_flags.h"
#include "app/settings.h"

namespace chasqui {
namespace {

// Groups of options, and options of other groups, that are of the whole server.
constexpr std::array<std::string_view, 3> kServersGroups = {"Listeners", "Web pages", "Resumable streams"};
constexpr std::array<std::string_view, 16> kServersFlags = {"--timeout",         "--sse-ping-interval",
                                                            "--drain-time",      "--drain-delay",
                                                            "--tenant-requests", "--supervise",
                                                            "--log-level",       "--log-format",
                                                            "--log-file",        "--log-requests",
                                                            "--log-prompts",     "--wakeup",
                                                            "--otlp-endpoint",   "--config",
                                                            "--check-model",     "--models-preset"};
// Of presets alone: nothing is loaded later, unloaded, or found in a cache.
constexpr std::array<std::string_view, 3> kPresetKeys = {"load-on-startup", "stop-timeout", "dedup-cache-models"};

template <class Words>
bool has(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != std::end(words);
}

bool is_servers(const CLI::App& serve, const std::string& flag) {
  const CLI::Option* const option = serve.get_option_no_throw(flag);
  if (option == nullptr) return false;
  const auto& names = option->get_lnames();
  return has(kServersGroups, option->get_group()) ||
         std::ranges::any_of(names, [](const std::string& name) { return has(kServersFlags, "--" + name); });
}

std::optional<bool> truth(const std::string& value) {
  if (has(std::array<std::string_view, 4>{"true", "1", "on", "enabled"}, value)) return true;
  if (has(std::array<std::string_view, 4>{"false", "0", "off", "disabled"}, value)) return false;
  return std::nullopt;
}

class SectionReader {
 public:
  explicit SectionReader(const CLI::App& serve) : serve_(serve) {}

  Result<void> add(const std::string& key, const std::string& value) {
    if (has(kPresetKeys, key)) {
      out_.notes.push_back(key + " has no effect: all models are loaded at start, and stay");
      return {};
    }
    const auto flag = flag_of_key(serve_, options_, key);
    if (!flag) return invalid_field(key, "there is no flag \"" + key + "\"");
    if (is_servers(serve_, flag->flag)) {
      out_.notes.push_back(key + " has no effect: it is of the whole server");
      return {};
    }
    if (flag->values > 0) return put(flag->flag, {flag->flag, value});
    const auto on = truth(value);
    if (!on) return invalid_field(key, key + " must be true or false");
    if (*on) return put(flag->flag, {flag->flag});
    // Off is what it is without the flag, unless there is one that says so.
    const auto off = flag_of_key(serve_, options_, "no-" + key);
    return put(flag->flag, off ? std::vector<std::string>{off->flag} : std::vector<std::string>());
  }

  SectionArguments take() {
    for (const auto& [flag, words] : by_flag_) out_.arguments.insert(out_.arguments.end(), words.begin(), words.end());
    return std::move(out_);
  }

 private:
  Result<void> put(const std::string& flag, std::vector<std::string> words) {
    by_flag_[flag] = std::move(words);
    return {};
  }

  const CLI::App& serve_;
  const LlamaOptions options_;
  std::map<std::string, std::vector<std::string>> by_flag_;  // the last one holds
  SectionArguments out_;
};

std::string stem_of(const std::string& path) {
  if (path.empty()) return "chasqui-demo";
  static const std::regex kShard("-[0-9]{5}-of-[0-9]{5}$");
  return std::regex_replace(std::filesystem::path(path).stem().string(), kShard, "");
}

Result<void> check_names(const std::vector<ServeConfig>& models) {
  std::vector<std::string> seen;
  for (const ServeConfig& model : models) {
    for (const std::string& name : names_of_model(model)) {
      if (has(seen, name)) {
        return invalid_field("--alias",
                             "two models are called " + name + "; give one of them another name with --alias");
      }
      seen.push_back(name);
    }
  }
  return {};
}

Result<void> list_files(ServeConfig& config) {
  std::vector<std::string> files = config.model_files;
  if (files.empty()) files.emplace_back();
  const std::vector<std::string>& names = config.model_names;
  const bool several = files.size() > 1;
  if (several && names.size() > files.size()) {
    return invalid_field("--alias", "--alias is there " + std::to_string(names.size()) + " times, and --model only " +
                                        std::to_string(files.size()) + " times");
  }
  std::vector<ServeConfig> models;
  for (std::size_t i = 0; i < files.size(); ++i) {
    ServeConfig& model = models.emplace_back(config);
    model.model_path = files[i];
    if (!several && !names.empty()) model.alias = names.back();
    if (several && i < names.size()) model.alias = names[i];
    if (several && model.alias.empty()) model.name = stem_of(files[i]);
  }
  config.models = std::move(models);
  return {};
}

Error bad_preset(const ServeConfig& config, const std::string& why) {
  return invalid_field("--models-preset", "--models-preset " + config.models_preset + ": " + why);
}

Result<ServeConfig> read_section(const CLI::App& serve, ServeConfig& config, const Preset& preset,
                                 const PresetSection& section, const ReadWith& read_with) {
  auto arguments = section_arguments(serve, preset.all, section);
  if (!arguments) return arguments.error();
  for (const std::string& note : arguments->notes) config.notes.push_back("[" + section.name + "] " + note);
  auto model = read_with(*arguments);
  if (!model) return model.error();
  if (model->model_files.empty()) return invalid_field("model", "it needs the file of a model: model = FILE");
  model->model_path = model->model_files.back();
  model->name = section.name;
  for (const std::string& name : model->model_names) model->alias += (model->alias.empty() ? "" : ",") + name;
  return model;
}

Result<void> list_sections(const CLI::App& serve, ServeConfig& config, const ReadWith& read_with) {
  if (!config.model_files.empty() || !config.model_names.empty()) {
    return invalid_field("--models-preset",
                         "--models-preset lists the models and their names: leave out --model and "
                         "--alias");
  }
  std::ifstream file(config.models_preset);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) return bad_preset(config, "it cannot be read, or there is nothing in it");
  const auto preset = read_preset(text);
  if (!preset) return bad_preset(config, preset.error().message);
  if (preset->sections.empty()) return bad_preset(config, "it has no section, which is a model each");
  for (const PresetSection& section : preset->sections) {
    auto model = read_section(serve, config, *preset, section, read_with);
    if (!model) return bad_preset(config, "[" + section.name + "] " + model.error().message);
    config.models.push_back(std::move(*model));
  }
  return {};
}

}  // namespace

Result<SectionArguments> section_arguments(const CLI::App& serve, const PresetSection& all,
                                           const PresetSection& section) {
  SectionReader out(serve);
  for (const PresetSection* const part : {&all, &section}) {
    for (const auto& [key, value] : part->items) {
      if (auto added = out.add(key, value); !added) return added.error();
    }
  }
  return out.take();
}

Result<void> list_models(const CLI::App& serve, ServeConfig& config, const ReadWith& read_with) {
  auto listed = config.models_preset.empty() ? list_files(config) : list_sections(serve, config, read_with);
  if (!listed) return listed;
  for (ServeConfig& model : config.models) model.sharers = static_cast<std::int32_t>(config.models.size());
  config.model_path = config.models.front().model_path;
  config.alias = config.models.front().alias;
  return config.models.size() > 1 ? check_names(config.models) : Result<void>();
}

}  // namespace chasqui
