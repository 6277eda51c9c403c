#include "pull/file_choice.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/nearest_word.h"
#include "cli/model_files.h"

namespace chasqui::pull {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamesShown = 40;

Error none(const std::string& message) { return {ErrorCode::not_found, message, ""}; }

std::string in_a_row(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kNamesShown; ++i) out += (out.empty() ? "" : ", ") + names[i];
  return out + (names.size() > kNamesShown ? " and " + std::to_string(names.size() - kNamesShown) + " more" : "");
}

const HubFile* find(const std::vector<HubFile>& files, const fs::path& path) {
  const auto found = std::ranges::find(files, path.string(), &HubFile::path);
  return found == files.end() ? nullptr : &*found;
}

std::vector<cli::ModelFile> models_of(const std::vector<HubFile>& files) {
  std::vector<cli::ListedFile> listed;
  for (const HubFile& file : files) listed.push_back({file.path, file.bytes});
  return cli::models_among(std::move(listed));
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names) {
  const std::string nearest = nearest_word(typed, names);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

Error no_such_quant(const std::vector<cli::ModelFile>& models, const FileWish& wish) {
  std::vector<std::string> names;
  for (const cli::ModelFile& model : models) {
    std::string name = model.tag.empty() ? model.name : model.tag;
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return none(wish.repo + " has no " + wish.quant + "; it has " + in_a_row(names) +
              did_you_mean(cli::in_capitals(wish.quant), names));
}

Error no_such_file(const std::vector<HubFile>& files, const FileWish& wish) {
  std::vector<std::string> names;
  for (const HubFile& file : files) {
    if (file.is_gguf()) names.push_back(file.path);
  }
  const std::string there = names.empty() ? "it has no GGUF file" : "it has " + in_a_row(names);
  return none(wish.repo + " has no file " + wish.file + "; " + there + did_you_mean(wish.file, names));
}

Error no_gguf(const std::vector<HubFile>& files, const FileWish& wish) {
  std::vector<std::string> names;
  for (const HubFile& file : files) names.push_back(file.path);
  return none(wish.repo + " has no GGUF file" + (names.empty() ? "" : "; it has " + in_a_row(names)) +
              "; repositories that have some are mostly called " + wish.repo.substr(wish.repo.find('/') + 1) + "-GGUF");
}

// All parts of it. Errors name the one that is missing.
Result<std::vector<HubFile>> parts_of(const std::vector<HubFile>& files, const cli::ModelFile& model,
                                      const FileWish& wish) {
  std::vector<HubFile> out;
  for (const fs::path& path : cli::parts_of(model)) {
    const HubFile* const file = find(files, path);
    if (file == nullptr)
      return none(wish.repo + " lacks " + path.string() + ", a part of a model of " + std::to_string(model.parts) +
                  " parts");
    out.push_back(*file);
  }
  return out;
}

// 8 of "model-Q8_0", 16 of "mmproj-model-BF16": digits behind the letters of its last word.
int bits_of(const std::string& path) {
  const std::string name = fs::path(path).stem().string();
  const std::size_t word = name.find_last_of("-.");
  const std::size_t digits = name.find_first_of("0123456789", word == name.npos ? 0 : word);
  return digits == name.npos ? 0 : std::atoi(name.c_str() + digits);
}

// As llama.cpp takes it: in the model's folder or above it, the deepest, and of those the one with weights most like
// it.
std::optional<HubFile> projector_of(const std::vector<HubFile>& files, const HubFile& model) {
  std::optional<HubFile> best;
  std::tuple<long, int> best_rank;
  const fs::path folder = fs::path(model.path).parent_path();
  for (const HubFile& file : files) {
    if (!file.is_gguf() || file.path.find("mmproj") == file.path.npos) continue;
    const fs::path its = fs::path(file.path).parent_path();
    if (std::mismatch(its.begin(), its.end(), folder.begin(), folder.end()).first != its.end()) continue;
    const std::tuple rank{-std::distance(its.begin(), its.end()), std::abs(bits_of(file.path) - bits_of(model.path))};
    if (best && best_rank <= rank) continue;
    best = file;
    best_rank = rank;
  }
  return best;
}

// The model that has that file as one of its parts.
const cli::ModelFile* model_with(const std::vector<cli::ModelFile>& models, const fs::path& path) {
  const auto has_it = [&path](const cli::ModelFile& model) {
    return model.path == path || (model.parts > 1 && std::ranges::count(cli::parts_of(model), path) > 0);
  };
  const auto found = std::ranges::find_if(models, has_it);
  return found == models.end() ? nullptr : &*found;
}

}  // namespace

Result<FileChoice> choose_files(const std::vector<HubFile>& files, const FileWish& wish) {
  const std::vector<cli::ModelFile> models = models_of(files);
  const cli::ModelFile* chosen = nullptr;
  if (!wish.file.empty()) {
    const HubFile* const file = find(files, wish.file);
    if (file == nullptr) return no_such_file(files, wish);
    chosen = model_with(models, wish.file);
    if (chosen == nullptr) return FileChoice{"", {*file}, {}};  // what is no model: a projector, a template
  } else {
    if (models.empty()) return no_gguf(files, wish);
    chosen = cli::choose_model(models, "", wish.quant);
    if (chosen == nullptr) return no_such_quant(models, wish);
  }
  auto parts = parts_of(files, *chosen, wish);
  if (!parts) return parts.error();
  FileChoice out{chosen->tag, std::move(*parts), {}};
  if (!wish.projector) return out;
  if (auto projector = projector_of(files, out.files.front())) out.projectors.push_back(std::move(*projector));
  return out;
}

}  // namespace chasqui::pull
