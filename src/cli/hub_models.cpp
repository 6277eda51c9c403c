#include "cli/hub_models.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/model_files.h"

namespace chasqui::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRepoPrefix = "models--";
constexpr std::string_view kManifestPrefix = "manifest=";  // older llama.cpp: manifest=USER=REPO=TAG.json

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code failed;
  fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) out.push_back(at->path());
  std::ranges::sort(out);
  return out;
}

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

// What `main` was when it was last downloaded, or else the newest snapshot that there is.
std::optional<fs::path> snapshot_of(const fs::path& repo) {
  std::ifstream ref(repo / "refs" / "main");
  std::string commit;
  std::getline(ref, commit);
  if (is_plain_name(commit) && is_folder(repo / "snapshots" / commit)) return repo / "snapshots" / commit;
  std::optional<fs::path> newest;
  fs::file_time_type when{};
  for (const fs::path& snapshot : entries_of(repo / "snapshots")) {
    std::error_code unknown;
    const fs::file_time_type written = fs::last_write_time(snapshot, unknown);
    if (unknown || (newest && written <= when)) continue;
    newest = snapshot;
    when = written;
  }
  return newest;
}

// The files of one repository, wherever they are.
struct Repo {
  std::string name;  // USER/REPO
  fs::path folder;   // what a file is named in
  std::vector<ModelFile> files{};
  std::string from = "Hugging Face";
  std::string prefix{};  // of the names of its files there
};

FoundModel of_repo(const Repo& repo, const ModelFile& file) {
  return {repo.name + (file.tag.empty() ? "" : ':' + file.tag), file.path.string(), file.bytes, format_of(file),
          repo.from};
}

std::optional<Repo> open_hub(const fs::path& folder, const std::string& name) {
  const auto snapshot = snapshot_of(folder / (std::string(kRepoPrefix) + replace_all(name, "/", "--")));
  if (!snapshot) return std::nullopt;
  return Repo{name, *snapshot, model_files(*snapshot, Depth::below)};
}

std::optional<Repo> open_plain(const fs::path& folder, const std::string& name) {
  const std::string prefix = replace_all(name, "/", "_") + '_';
  Repo out{name, folder, model_files(folder, Depth::folder), "llama.cpp", prefix};
  std::erase_if(out.files, [&prefix](const ModelFile& file) { return !file.name.starts_with(prefix); });
  if (out.files.empty()) return std::nullopt;
  return out;
}

std::vector<Repo> all_of_hub(const fs::path& folder) {
  std::vector<Repo> out;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(kRepoPrefix) || !is_folder(entry)) continue;
    if (auto repo = open_hub(folder, replace_all(name.substr(kRepoPrefix.size()), "--", "/"))) {
      out.push_back(std::move(*repo));
    }
  }
  return out;
}

// Files that no manifest is for are called as they are.
std::vector<FoundModel> all_of_plain(const fs::path& folder) {
  std::vector<std::string> repos;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    const std::size_t end = name.rfind('=');
    if (!name.starts_with(kManifestPrefix) || end < kManifestPrefix.size()) continue;
    repos.push_back(replace_all(name.substr(kManifestPrefix.size(), end - kManifestPrefix.size()), "=", "/"));
  }
  std::vector<FoundModel> out;
  for (const ModelFile& file : model_files(folder, Depth::folder)) {
    if (!file.complete()) continue;
    const auto its = std::ranges::find_if(
        repos, [&file](const std::string& repo) { return file.name.starts_with(replace_all(repo, "/", "_") + '_'); });
    Repo repo{its == repos.end() ? file.name : *its, folder, {}, "llama.cpp"};
    out.push_back(of_repo(repo, file));
    if (its == repos.end()) out.back().name = file.name;
  }
  return out;
}

const ModelFile* choose(const Repo& repo, std::string_view quant, std::string_view file) {
  if (file.empty()) return choose_model(repo.files, repo.folder, quant);
  const fs::path path = repo.folder / (repo.prefix + std::string(file));
  const auto found = std::ranges::find(repo.files, path, &ModelFile::path);
  return found == repo.files.end() ? nullptr : &*found;
}

Error none(const std::string& message) { return {ErrorCode::not_found, message, ""}; }

// What brings it here.
std::string or_pull(std::string_view name, std::string_view file) {
  return "; `chasqui pull " + std::string(name) + (file.empty() ? "" : " --hf-file " + std::string(file)) +
         "` downloads it if Hugging Face has it";
}

Result<FoundModel> of_files(const Repo& repo, std::string_view quant, std::string_view file) {
  const ModelFile* const chosen = choose(repo, quant, file);
  if (chosen != nullptr && chosen->complete()) return of_repo(repo, *chosen);
  if (chosen != nullptr) {
    return none(chosen->path.string() + " has " + std::to_string(chosen->found) + " of its " +
                std::to_string(chosen->parts) + " parts");
  }
  std::string there;
  for (const ModelFile& one : repo.files) {
    there += (there.empty() ? "" : ", ") + one.path.lexically_relative(repo.folder).string();
  }
  const std::string wanted(file.empty() ? quant : file);
  return none(repo.folder.string() + " has no " + (wanted.empty() ? std::string("GGUF file") : wanted) +
              (there.empty() ? "" : "; it has " + there));
}

}  // namespace

std::vector<FoundModel> hub_models(const HubFolders& folders) {
  std::vector<FoundModel> out;
  for (const std::string& folder : folders.hub) {
    for (const Repo& repo : all_of_hub(folder)) {
      for (const ModelFile& file : repo.files) {
        if (file.complete()) out.push_back(of_repo(repo, file));
      }
    }
  }
  for (const std::string& folder : folders.plain) std::ranges::move(all_of_plain(folder), std::back_inserter(out));
  return out;
}

Result<FoundModel> find_in_hub(const HubFolders& folders, std::string_view name, std::string_view file) {
  const std::size_t colon = name.find(':');
  const std::string repo(name.substr(0, colon));
  const std::string_view quant = colon == name.npos ? std::string_view() : name.substr(colon + 1);
  const std::size_t slash = repo.find('/');
  if (slash == repo.npos || !is_plain_name(repo.substr(0, slash)) || !is_plain_name(repo.substr(slash + 1))) {
    return none("a model of Hugging Face is called USER/REPO or USER/REPO:QUANT; got " + std::string(name));
  }
  std::optional<Error> missed;
  const auto look = [&](const std::optional<Repo>& there) -> std::optional<FoundModel> {
    if (!there) return std::nullopt;
    auto found = of_files(*there, quant, file);
    if (found) return std::move(*found);
    if (!missed) missed = found.error();
    return std::nullopt;
  };
  std::string looked;
  for (const auto& [list, open] : {std::pair(&folders.hub, &open_hub), std::pair(&folders.plain, &open_plain)}) {
    for (const std::string& folder : *list) {
      if (auto found = look(open(folder, repo))) return std::move(*found);
      looked += (looked.empty() ? "" : ", ") + folder;
    }
  }
  if (missed) return none(missed->message + or_pull(name, file));
  return none(repo + " is in no cache of Hugging Face" + (looked.empty() ? "" : ": looked in " + looked) +
              or_pull(name, file));
}

}  // namespace chasqui::cli
