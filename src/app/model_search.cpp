#include "app/model_search.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/environment.h"

namespace chasqui {
namespace {

class FileFinder {
 public:
  FileFinder(ServeConfig& config, std::vector<std::string>& notes) : config_(config), notes_(notes) {}

  void find(const std::string& flag, std::string& path, const std::string& repo, const std::string& repo_file) {
    if (!repo.empty()) {
      path = repo;
      return take("--hf-repo" + flag, path, repo, cli::find_in_hub(folders_.hub, repo, repo_file));
    }
    if (is_model_name(path)) take("--model" + flag, path, path, cli::find_model(folders_, path));
  }

 private:
  void take(const std::string& flag, std::string& path, const std::string& given, Result<cli::FoundModel> found) {
    if (!found) {
      config_.not_found = flag + ' ' + given + ": " + found.error().message;
      return;
    }
    if (found->adapted) notes_.push_back(given + " has an adapter in Ollama, which is not used: name it with --lora");
    path = found->path;
  }

  const cli::ModelFolders folders_ = folders_of_models();
  ServeConfig& config_;
  std::vector<std::string>& notes_;
};

}  // namespace

cli::ModelFolders folders_of_models() { return cli::model_folders(&variable); }

bool names_file(const std::string& given) {
  std::error_code unknown;
  const bool looks = given.ends_with(".gguf") || given.find('/') != std::string::npos;
  return looks && std::filesystem::is_regular_file(given, unknown);
}

bool is_model_name(const std::string& given) {
  if (given.empty() || given.ends_with(".gguf") || given.front() == '/' || given.front() == '.') return false;
  std::error_code unknown;
  return !std::filesystem::exists(given, unknown);
}

Result<std::string> file_of_model(const std::string& given) {
  if (!is_model_name(given)) return given;
  auto found = cli::find_model(folders_of_models(), given);
  if (!found) return Error{ErrorCode::not_found, given + ": " + found.error().message, ""};
  return std::move(found->path);
}

void find_files(ServeConfig& config, std::vector<std::string>& notes) {
  if (config.engine == EngineKind::sim) return;  // it reads none
  FileFinder finder(config, notes);
  finder.find("", config.model_path, config.hf_repo, config.hf_file);
  finder.find("-draft", config.speculation.draft_model, config.speculation.draft_repo, "");
}

}  // namespace chasqui
