#include "cli/model_files.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <system_error>
#include <utility>

namespace chasqui::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFilesMax = 20'000;  // of one folder: a wrong one must not take minutes
constexpr std::string_view kBeside[] = {"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"};

// What the name of one file says.
struct FileName {
  std::string name;
  std::string tag;
  std::int32_t part = 1;
  std::int32_t parts = 1;
};

std::optional<FileName> read_name(const fs::path& path) {
  static const std::regex kPart("^(.+)-([0-9]{5})-of-([0-9]{5})$");
  static const std::regex kTag("[-.]([A-Za-z0-9_]+)$");
  if (path.extension() != ".gguf") return std::nullopt;
  FileName out;
  out.name = path.stem().string();
  for (const std::string_view beside : kBeside) {
    if (out.name.find(beside) != std::string::npos) return std::nullopt;
  }
  std::smatch found;
  if (std::regex_match(out.name, found, kPart)) {
    out.part = std::stoi(found[2].str());
    out.parts = std::stoi(found[3].str());
    out.name = std::string(found[1].str());
  }
  if (std::regex_search(out.name, found, kTag)) out.tag = in_capitals(found[1].str());
  return out;
}

// The folder may change while it is read, and parts of it may be closed to us.
template <class Iterator>
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code failed;
  Iterator at(folder, fs::directory_options::skip_permission_denied, failed);
  while (!failed && at != Iterator() && out.size() < kFilesMax) {
    std::error_code unknown;
    if (fs::is_regular_file(at->path(), unknown)) out.push_back(at->path());
    at.increment(failed);
  }
  return out;
}

bool is_of(const ModelFile& model, const fs::path& path, const FileName& name) {
  return model.name == name.name && model.parts == name.parts && model.path.parent_path() == path.parent_path();
}

// Whether it is a word of the path: before it nothing that belongs to one, behind it the end of one.
bool has_word(const std::string& path, const std::string& word) {
  for (std::size_t at = path.find(word); at != std::string::npos; at = path.find(word, at + 1)) {
    const char before = at == 0 ? '-' : path[at - 1];
    const char behind = at + word.size() < path.size() ? path[at + word.size()] : '.';
    const bool begins = !((before >= 'A' && before <= 'Z') || (before >= '0' && before <= '9') || before == '_');
    if (begins && (behind == '.' || behind == '-')) return true;
  }
  return false;
}

}  // namespace

std::vector<ModelFile> model_files(const fs::path& folder, Depth depth) {
  std::vector<ListedFile> files;
  for (fs::path& path : depth == Depth::below ? files_in<fs::recursive_directory_iterator>(folder)
                                              : files_in<fs::directory_iterator>(folder)) {
    std::error_code unknown;
    const std::uint64_t bytes = fs::file_size(path, unknown);
    files.push_back({std::move(path), unknown ? 0 : bytes});
  }
  return models_among(std::move(files));
}

std::vector<ModelFile> models_among(std::vector<ListedFile> files) {
  std::ranges::sort(files, {}, &ListedFile::path);
  std::vector<ModelFile> out;
  for (ListedFile& file : files) {
    auto name = read_name(file.path);
    if (!name) continue;
    if (name->part == 1) {
      out.push_back({std::move(file.path), std::move(name->name), std::move(name->tag), file.bytes, name->parts, 1});
    } else if (!out.empty() && is_of(out.back(), file.path, *name)) {
      out.back().bytes += file.bytes;
      ++out.back().found;
    }
  }
  return out;
}

std::vector<fs::path> parts_of(const ModelFile& file) {
  std::vector<fs::path> out = {file.path};
  const std::string first = file.path.filename().string();
  const std::size_t number = first.size() - std::string_view("00001-of-00002.gguf").size();
  for (std::int32_t part = 2; part <= file.parts; ++part) {
    const std::string digits = std::to_string(part);
    std::string name = first;
    name.replace(number, 5, std::string(5 - digits.size(), '0') + digits);
    out.push_back(file.path.parent_path() / name);
  }
  return out;
}

const ModelFile* choose_model(const std::vector<ModelFile>& files, const fs::path& folder, std::string_view quant) {
  const auto with = [&](std::string_view word) -> const ModelFile* {
    const auto found = std::ranges::find_if(files, [&, word = in_capitals(word)](const ModelFile& one) {
      return has_word(in_capitals(one.path.lexically_relative(folder).string()), word);
    });
    return found == files.end() ? nullptr : &*found;
  };
  if (!quant.empty()) return with(quant);
  for (const std::string_view usual : {"Q4_K_M", "Q8_0"}) {
    if (const ModelFile* const found = with(usual)) return found;
  }
  return files.empty() ? nullptr : &files.front();
}

std::string format_of(const ModelFile& file) {
  static const std::regex kFormat("I?Q[0-9].*|TQ[0-9].*|B?F(16|32)|(MX|NV)FP4.*");
  return std::regex_match(file.tag, kFormat) ? file.tag : std::string();
}

std::string in_capitals(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.find_first_of(std::string_view("/\0", 2)) == text.npos;
}

}  // namespace chasqui::cli
