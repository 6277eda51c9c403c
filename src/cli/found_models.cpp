#include "cli/found_models.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <set>
#include <system_error>
#include <utility>

#include "base/nearest_word.h"
#include "cli/model_files.h"
#include "cli/ollama_models.h"

namespace chasqui::cli {
namespace {

constexpr std::size_t kNearNames = 5;

std::string near_names(const std::vector<FoundModel>& models, std::string_view name) {
  const std::string wanted = in_capitals(name);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const FoundModel& model : models) {
    const std::string other = in_capitals(model.name);
    const bool part = other.find(wanted) != other.npos || wanted.find(other) != wanted.npos;
    near.emplace_back(part ? 0 : edit_distance(wanted, other), model.name);
  }
  std::ranges::stable_sort(near);
  std::string out;
  for (const auto& [distance, other] : near | std::views::take(kNearNames)) out += (out.empty() ? "" : ", ") + other;
  return out;
}

// As Ollama's users name what is of Hugging Face, too.
std::string_view repo_of(std::string_view name) {
  for (const std::string_view host : {"hf.co/", "huggingface.co/"}) {
    if (name.starts_with(host)) name.remove_prefix(host.size());
  }
  return name;
}

Error no_such_model(const ModelFolders& folders, std::string_view name) {
  const std::vector<FoundModel> models = find_models(folders);
  const std::string near = near_names(models, name);
  const std::string there_is_none = "there is neither such a file nor a model of this name in " + folders.in_words();
  const bool in_hub = repo_of(name).find('/') != name.npos;
  const std::string or_pull = in_hub ? "; `chasqui pull " + std::string(name) + "` downloads one of Hugging Face" : "";
  if (near.empty()) return {ErrorCode::not_found, there_is_none + ", and no other one either" + or_pull, ""};
  const std::string all = models.size() > kNearNames ? " are near, `chasqui list` shows all" : " are there";
  return {ErrorCode::not_found, there_is_none + "; " + near + all + or_pull, ""};
}

FoundModel of_folder(std::string name, const ModelFile& file) {
  return {std::move(name), file.path.string(), file.bytes, format_of(file), "folder"};
}

}  // namespace

std::string ModelFolders::in_words() const {
  std::string out;
  std::set<std::string> said;
  for (const auto* const list : {&ollama, &hub.hub, &hub.plain}) {
    for (const std::string& folder : *list) {
      if (said.insert(folder).second) out += (out.empty() ? "" : ", ") + folder;
    }
  }
  return out;
}

ModelFolders model_folders(Variable variable) {
  const auto value = [variable](const char* name) {
    const char* const text = variable(name);
    return std::string(text != nullptr ? text : "");
  };
  const std::string home = value("HOME");
  ModelFolders out;
  if (const std::string said = value("OLLAMA_MODELS"); !said.empty()) {
    out.ollama.push_back(said);
  } else {
    if (!home.empty()) out.ollama.push_back(home + "/.ollama/models");
    out.ollama.emplace_back("/usr/share/ollama/.ollama/models");  // of its service
  }
  const auto first_of = [&value](std::initializer_list<std::pair<const char*, const char*>> names) {
    for (const auto& [name, below] : names) {
      if (const std::string said = value(name); !said.empty()) return said + below;
    }
    return std::string();
  };
  const std::string llama = value("LLAMA_CACHE");
  const std::string hub = first_of({{"HF_HUB_CACHE", ""},
                                    {"HUGGINGFACE_HUB_CACHE", ""},
                                    {"HF_HOME", "/hub"},
                                    {"XDG_CACHE_HOME", "/huggingface/hub"},
                                    {"HOME", "/.cache/huggingface/hub"}});
  const std::string plain =
      first_of({{"LLAMA_CACHE", ""}, {"XDG_CACHE_HOME", "/llama.cpp"}, {"HOME", "/.cache/llama.cpp"}});
  if (!llama.empty()) out.hub.hub.push_back(llama);
  if (!hub.empty()) out.hub.hub.push_back(hub);
  if (!plain.empty()) out.hub.plain.push_back(plain);
  return out;
}

std::vector<FoundModel> find_models(const ModelFolders& folders) {
  std::vector<FoundModel> all;
  for (const std::string& folder : folders.ollama) std::ranges::move(ollama_models(folder), std::back_inserter(all));
  std::ranges::move(hub_models(folders.hub), std::back_inserter(all));
  std::vector<FoundModel> out;
  std::set<std::string> names;  // a name means the first that has it
  for (FoundModel& model : all) {
    if (names.insert(model.name).second) out.push_back(std::move(model));
  }
  std::ranges::stable_sort(out, {}, &FoundModel::name);
  return out;
}

Result<FoundModel> find_model(const ModelFolders& folders, std::string_view name) {
  for (const std::string& folder : folders.ollama) {
    if (auto found = find_in_ollama(folder, name)) return std::move(*found);
  }
  if (auto found = find_in_hub(folders.hub, repo_of(name), "")) return found;
  for (FoundModel& one : hub_models(folders.hub)) {
    if (one.name == name) return std::move(one);  // a file of llama.cpp's that names no repository
  }
  return no_such_model(folders, name);
}

Result<std::vector<FoundModel>> models_in_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<fs::path> inner;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator(); at.increment(failed)) {
    std::error_code unknown;
    if (fs::is_directory(at->path(), unknown)) inner.push_back(at->path());
  }
  if (failed) return Error{ErrorCode::not_found, folder + ": " + failed.message(), ""};
  std::vector<FoundModel> out;
  for (const ModelFile& file : model_files(folder, Depth::folder)) {
    if (file.complete()) out.push_back(of_folder(file.name, file));
  }
  for (const fs::path& one : inner) {
    std::vector<ModelFile> files = model_files(one, Depth::folder);
    std::erase_if(files, [](const ModelFile& file) { return !file.complete(); });
    const std::string name = one.filename().string();
    for (const ModelFile& file : files)
      out.push_back(of_folder(files.size() == 1 ? name : name + '/' + file.name, file));
  }
  std::ranges::stable_sort(out, {}, &FoundModel::name);
  return out;
}

}  // namespace chasqui::cli
