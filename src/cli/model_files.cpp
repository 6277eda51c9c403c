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
  std::ranges::sort(out);
  return out;
}

bool is_of(const ModelFile& model, const fs::path& path, const FileName& name) {
  return model.name == name.name && model.parts == name.parts && model.path.parent_path() == path.parent_path();
}

}  // namespace

std::vector<ModelFile> model_files(const fs::path& folder, Depth depth) {
  std::vector<ModelFile> out;
  for (const fs::path& path : depth == Depth::below ? files_in<fs::recursive_directory_iterator>(folder)
                                                    : files_in<fs::directory_iterator>(folder)) {
    auto name = read_name(path);
    if (!name) continue;
    std::error_code unknown;
    const std::uint64_t bytes = fs::file_size(path, unknown);
    if (name->part == 1) {
      out.push_back({path, std::move(name->name), std::move(name->tag), unknown ? 0 : bytes, name->parts, 1});
    } else if (!out.empty() && is_of(out.back(), path, *name)) {
      out.back().bytes += unknown ? 0 : bytes;
      ++out.back().found;
    }
  }
  return out;
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
