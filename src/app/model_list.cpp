#include "app/model_list.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <regex>
#include <string_view>

#include "app/llama_flags.h"
#include "app/model_search.h"
#include "app/settings.h"
#include "app/settings_text.h"

namespace chasqui {
namespace {

// Groups of options, and options of other groups, that are of the whole server.
constexpr std::array<std::string_view, 4> kServersGroups = {"Listeners", "Web pages", "Resumable streams",
                                                            "What nodes share"};
constexpr std::array<std::string_view, 29> kServersFlags = {"--timeout",         "--sse-ping-interval",
                                                            "--drain-time",      "--drain-delay",
                                                            "--tenant-requests", "--supervise",
                                                            "--log-level",       "--log-format",
                                                            "--log-file",        "--log-requests",
                                                            "--log-prompts",     "--wakeup",
                                                            "--otlp-endpoint",   "--config",
                                                            "--check-model",     "--models-preset",
                                                            "--models-dir",      "--models-max",
                                                            "--models-autoload", "--models-trial",
                                                            "--models-memory",   "--record",
                                                            "--batch-dir",       "--batch-mib",
                                                            "--batch-lines",     "--batch-queue",
                                                            "--media-url-hosts", "--rpc-public",
                                                            "--request-log-form"};
// Of presets alone: no process is stopped, and nothing of a cache is listed.
constexpr std::array<std::string_view, 2> kPresetKeys = {"stop-timeout", "dedup-cache-models"};

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

  Result<void> add(const PresetItem& item) {
    auto added = add(item.key, item.value, item.line);
    if (added || item.line == 0) return added;
    Error error = added.error();
    error.message += " (line " + std::to_string(item.line) + ")";
    return error;
  }

  SectionArguments take() {
    for (const auto& [flag, words] : said_) out_.arguments.insert(out_.arguments.end(), words.begin(), words.end());
    return std::move(out_);
  }

 private:
  Result<void> add(const std::string& key, const std::string& value, int line) {
    if (has(kPresetKeys, key)) {
      out_.notes.push_back(key + " has no effect: models have no process of their own, and caches are not listed");
      return {};
    }
    if (key == "load-on-startup") {
      const auto on = truth(value);
      if (!on) return invalid_field(key, key + " must be true or false");
      out_.at_start = *on;
      return {};
    }
    const auto flag = flag_of_key(serve_, options_, key);
    if (!flag) return invalid_field(key, "there is no flag \"" + key + "\"");
    if (is_servers(serve_, flag->flag)) {
      out_.notes.push_back(key + " has no effect: it is of the whole server");
      return {};
    }
    out_.lines[flag->flag] = line;
    if (flag->values > 0) return put(flag->flag, {flag->flag, value});
    const auto on = truth(value);
    if (!on) return invalid_field(key, key + " must be true or false");
    if (*on) return put(flag->flag, {flag->flag});
    // Off is what it is without the flag, unless there is one that says so.
    const auto off = flag_of_key(serve_, options_, "no-" + key);
    return put(flag->flag, off ? std::vector<std::string>{off->flag} : std::vector<std::string>());
  }

  Result<void> put(const std::string& flag, std::vector<std::string> words) {
    const std::string name = without_no(flag);
    std::erase_if(said_, [&name](const auto& earlier) { return earlier.first == name; });
    said_.emplace_back(name, std::move(words));
    return {};
  }

  // A flag and its contrary are two words for one thing.
  static std::string without_no(const std::string& flag) {
    constexpr std::string_view kNo = "--no-";
    return flag.starts_with(kNo) ? "--" + flag.substr(kNo.size()) : flag;
  }

  const CLI::App& serve_;
  const LlamaOptions options_;
  std::vector<std::pair<std::string, std::vector<std::string>>>
      said_;  // of each flag what was said last, in that order
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

// A model that was named on the command line: its file, or its repository.
struct NamedModel {
  std::string file;
  std::string repo;

  // What it is called where --alias does not say. A name stays what it is.
  std::string name() const { return !repo.empty() ? repo : is_model_name(file) ? file : stem_of(file); }
};

Result<std::vector<NamedModel>> named_models(const ServeConfig& config) {
  std::vector<NamedModel> out;
  for (const std::string& file : config.model_files) out.push_back({file, ""});
  for (const std::string& repo : config.hf_repos) out.push_back({"", repo});
  if (out.empty() && config.models_dir.empty()) out.emplace_back();
  if (!config.hf_file.empty() && config.hf_repos.size() != 1) {
    return invalid_field("--hf-file", "--hf-file is a file of one repository: give --hf-repo once, not " +
                                          std::to_string(config.hf_repos.size()) + " times");
  }
  if (out.size() != 1 && config.model_names.size() > out.size()) {
    return invalid_field("--alias", "--alias is there " + std::to_string(config.model_names.size()) +
                                        " times, and --model only " + std::to_string(out.size()) + " times");
  }
  return out;
}

void use(ServeConfig& model, const NamedModel& named) {
  model.model_path = named.file;
  model.hf_repo = named.repo;
}

Result<void> list_named(ServeConfig& config) {
  const auto named = named_models(config);
  if (!named) return named.error();
  const std::vector<std::string>& names = config.model_names;
  const bool several = named->size() > 1 || !config.models_dir.empty();
  std::vector<ServeConfig> models;
  for (std::size_t i = 0; i < named->size(); ++i) {
    ServeConfig& model = models.emplace_back(config);
    use(model, (*named)[i]);
    if (i < names.size()) model.alias = names.size() > named->size() ? names.back() : names[i];
    const bool by_file = model.hf_repo.empty() && !is_model_name(model.model_path);
    if (model.alias.empty() && (several || !by_file)) model.name = (*named)[i].name();
  }
  config.models = std::move(models);
  return {};
}

Error bad_preset(const ServeConfig& config, const std::string& why) {
  return invalid_field("--models-preset", "--models-preset " + config.models_preset + ": " + why);
}

// Where the values of a section's flags came from.
ValueOrigins origins_of(const ServeConfig& config, const SectionArguments& section) {
  ValueOrigins out;
  for (const auto& [flag, line] : section.lines) out[flag] = config.models_preset + ", line " + std::to_string(line);
  return out;
}

// Those of the server's, and the section's where the flag was not typed.
ValueOrigins joined_origins(const CLI::App& serve, const ServeConfig& config, const ValueOrigins& of_section) {
  ValueOrigins out = config.origins;
  for (const auto& [flag, origin] : of_section) {
    const CLI::Option* const option = serve.get_option_no_throw(flag);
    const bool typed = option != nullptr && option->count() > 0 && !config.origins.contains(flag);
    if (!typed) out[flag] = origin;
  }
  return out;
}

Result<ServeConfig> read_section(const CLI::App& serve, ServeConfig& config, const Preset& preset,
                                 const PresetSection& section, const ReadWith& read_with) {
  auto arguments = section_arguments(serve, preset.all, section);
  if (!arguments) return arguments.error();
  for (const std::string& note : arguments->notes) config.notes.push_back("[" + section.name + "] " + note);
  const ValueOrigins origins = origins_of(config, *arguments);
  auto model = read_with(*arguments);
  if (!model) return with_origin(model.error(), origins);
  model->origins = joined_origins(serve, config, origins);
  if (!model->model_files.empty()) model->model_path = model->model_files.back();
  if (model->model_files.empty() && !model->hf_repos.empty()) model->hf_repo = model->hf_repos.back();
  model->name = section.name;
  model->on_demand = true;
  model->at_start = arguments->at_start;
  for (const std::string& name : model->model_names) model->alias += (model->alias.empty() ? "" : ",") + name;
  return model;
}

// Without the flag an empty one.
Result<Preset> open_preset(const ServeConfig& config) {
  if (config.models_preset.empty()) return Preset();
  if (!config.model_files.empty() || !config.hf_repos.empty() || !config.model_names.empty()) {
    return invalid_field("--models-preset",
                         "--models-preset lists the models and their names: leave out --model, --hf-repo and --alias");
  }
  auto text = read_settings_text(config.models_preset);
  if (!text) return bad_preset(config, text.error().message);
  auto preset = read_preset(*text);
  if (!preset) return bad_preset(config, preset.error().message);
  if (preset->sections.empty() && config.models_dir.empty()) {
    return bad_preset(config, "it has no section, which is a model each");
  }
  return preset;
}

Result<void> list_sections(const CLI::App& serve, ServeConfig& config, const Preset& preset,
                           const ReadWith& read_with) {
  for (const PresetSection& section : preset.sections) {
    auto model = read_section(serve, config, preset, section, read_with);
    if (!model) return bad_preset(config, "[" + section.name + "] " + model.error().message);
    config.models.push_back(std::move(*model));
  }
  return {};
}

// What was named before is stronger: a file of a folder that is called like a section is that section's, if it has
// none.
Result<void> list_folder(const CLI::App& serve, ServeConfig& config, const Preset& preset, const ReadWith& read_with) {
  if (config.models_dir.empty()) return {};
  const auto found = cli::models_in_folder(config.models_dir);
  if (!found) return invalid_field("--models-dir", "--models-dir " + found.error().message);
  for (const cli::FoundModel& file : *found) {
    const auto same = [&file](const ServeConfig& model) { return model.name == file.name; };
    if (const auto named = std::ranges::find_if(config.models, same); named != config.models.end()) {
      if (named->model_path.empty() && named->hf_repo.empty()) named->model_path = file.path;
      continue;
    }
    auto model = read_section(serve, config, preset, {file.name, {}}, read_with);
    if (!model) return invalid_field("--models-dir", "--models-dir " + file.path + ": " + model.error().message);
    use(*model, {file.path, ""});
    model->alias.clear();
    config.models.push_back(std::move(*model));
  }
  if (config.models.empty()) {
    return invalid_field("--models-dir", "--models-dir " + config.models_dir + ": there is no GGUF file in it");
  }
  return {};
}

Result<void> check_sections(const ServeConfig& config) {
  for (const ServeConfig& model : config.models) {
    if (config.models_preset.empty() || !model.model_path.empty() || !model.hf_repo.empty()) continue;
    return bad_preset(config, "[" + model.name + "] it needs the file of a model: model = FILE");
  }
  return {};
}

}  // namespace

Result<SectionArguments> section_arguments(const CLI::App& serve, const PresetSection& all,
                                           const PresetSection& section) {
  SectionReader out(serve);
  for (const PresetSection* const part : {&all, &section}) {
    for (const PresetItem& item : part->items) {
      if (auto added = out.add(item); !added) return added.error();
    }
  }
  return out.take();
}

Result<void> list_models(const CLI::App& serve, ServeConfig& config, const ReadWith& read_with) {
  const auto preset = open_preset(config);
  if (!preset) return preset.error();
  auto listed = config.models_preset.empty() ? list_named(config) : list_sections(serve, config, *preset, read_with);
  if (listed) listed = list_folder(serve, config, *preset, read_with);
  if (listed) listed = check_sections(config);
  if (!listed) return listed;
  // What answers requests that name no model is always there.
  config.models.front().at_start = true;
  const auto all = static_cast<std::int32_t>(config.models.size());
  const bool on_demand = std::ranges::any_of(config.models, &ServeConfig::on_demand);
  for (ServeConfig& model : config.models) {
    model.listed = all;
    model.sharers = on_demand && config.models_max > 0 ? std::min(all, config.models_max) : all;
    find_files(model, config.notes);
  }
  config.model_path = config.models.front().model_path;
  config.alias = config.models.front().alias;
  return config.models.size() > 1 ? check_names(config.models) : Result<void>();
}

}  // namespace chasqui
