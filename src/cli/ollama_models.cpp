#include "cli/ollama_models.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <boost/json.hpp>

#include "cli/model_files.h"

namespace chasqui::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::uintmax_t kJsonBytes = 1 << 20;  // of a manifest, and of what it calls the model's configuration
constexpr std::size_t kManifestsMax = 20'000;
constexpr std::string_view kRegistry = "registry.ollama.ai";
constexpr std::string_view kLibrary = "library";
constexpr std::string_view kLatest = "latest";
constexpr std::string_view kModelLayer = "application/vnd.ollama.image.model";
constexpr std::string_view kAdapterLayer = "application/vnd.ollama.image.adapter";

using Parts = std::array<std::string, 4>;  // registry, user, model, tag: the path of a manifest

std::optional<Parts> parts_of(std::string_view name) {
  Parts out = {std::string(kRegistry), std::string(kLibrary), "", std::string(kLatest)};
  const std::size_t colon = name.rfind(':');
  if (colon != name.npos && name.find('/', colon) == name.npos) {
    out[3] = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  for (std::size_t at = 3; at-- > 0;) {
    const std::size_t slash = at == 0 ? name.npos : name.rfind('/');
    out[at] = slash == name.npos ? name : name.substr(slash + 1);
    if (slash == name.npos) break;
    name = name.substr(0, slash);
  }
  if (!std::ranges::all_of(out, is_plain_name)) return std::nullopt;
  return out;
}

std::string name_of(const Parts& parts) {
  const bool official = parts[0] == kRegistry;
  std::string out = official ? "" : parts[0] + '/';
  if (!official || parts[1] != kLibrary) out += parts[1] + '/';
  return out + parts[2] + ':' + parts[3];
}

std::vector<Parts> all_parts(const fs::path& manifests) {
  std::vector<Parts> out;
  std::error_code failed;
  fs::recursive_directory_iterator at(manifests, fs::directory_options::skip_permission_denied, failed);
  while (!failed && at != fs::recursive_directory_iterator() && out.size() < kManifestsMax) {
    std::error_code unknown;
    const fs::path below = at->path().lexically_relative(manifests);
    Parts parts;
    if (std::distance(below.begin(), below.end()) == 4 && fs::is_regular_file(at->path(), unknown)) {
      std::ranges::transform(below, parts.begin(), [](const fs::path& part) { return part.string(); });
      if (std::ranges::all_of(parts, is_plain_name)) out.push_back(std::move(parts));
    }
    at.increment(failed);
  }
  std::ranges::sort(out);
  return out;
}

json::object read_object(const fs::path& path) {
  std::error_code unknown;
  const std::uintmax_t bytes = fs::file_size(path, unknown);
  if (unknown || bytes > kJsonBytes) return {};
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  boost::system::error_code failed;
  const json::value value = json::parse(text, failed);
  return !failed && value.is_object() ? value.get_object() : json::object();
}

std::string text_in(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// The file that a digest names; empty when it is no digest, or there is no such file.
fs::path blob_of(const fs::path& folder, const json::object& layer) {
  constexpr std::string_view kKind = "sha256:";
  const std::string digest = text_in(layer, "digest");
  if (!digest.starts_with(kKind) || digest.size() != kKind.size() + 64) return {};
  const std::string hex = digest.substr(kKind.size());
  if (hex.find_first_not_of("0123456789abcdef") != hex.npos) return {};
  const fs::path blob = folder / "blobs" / ("sha256-" + hex);
  std::error_code unknown;
  return fs::is_regular_file(blob, unknown) ? blob : fs::path();
}

std::optional<FoundModel> read_manifest(const fs::path& folder, const Parts& parts) {
  const json::object manifest = read_object(folder / "manifests" / parts[0] / parts[1] / parts[2] / parts[3]);
  const json::value* const layers = manifest.if_contains("layers");
  if (layers == nullptr || !layers->is_array()) return std::nullopt;
  FoundModel out;
  for (const json::value& value : layers->get_array()) {
    const json::object* const layer = value.if_object();
    if (layer == nullptr) continue;
    const std::string type = text_in(*layer, "mediaType");
    if (type == kAdapterLayer) out.adapted = true;
    if (type == kModelLayer && out.path.empty()) out.path = blob_of(folder, *layer).string();
  }
  if (out.path.empty()) return std::nullopt;
  if (const json::value* const about = manifest.if_contains("config"); about != nullptr && about->is_object()) {
    const fs::path blob = blob_of(folder, about->get_object());
    if (!blob.empty()) out.format = text_in(read_object(blob), "file_type");
  }
  std::error_code unknown;
  const std::uintmax_t bytes = fs::file_size(out.path, unknown);
  out.bytes = unknown ? 0 : bytes;
  out.name = name_of(parts);
  out.from = "Ollama";
  return out;
}

}  // namespace

std::vector<FoundModel> ollama_models(const std::string& folder) {
  std::vector<FoundModel> out;
  for (const Parts& parts : all_parts(fs::path(folder) / "manifests")) {
    if (auto found = read_manifest(folder, parts)) out.push_back(std::move(*found));
  }
  return out;
}

std::optional<FoundModel> find_in_ollama(const std::string& folder, std::string_view name) {
  const auto wanted = parts_of(name);
  if (!wanted) return std::nullopt;
  if (auto found = read_manifest(folder, *wanted)) return found;
  const std::string same = in_capitals(name_of(*wanted));
  for (const Parts& parts : all_parts(fs::path(folder) / "manifests")) {
    if (in_capitals(name_of(parts)) != same) continue;
    if (auto found = read_manifest(folder, parts)) return found;
  }
  return std::nullopt;
}

}  // namespace chasqui::cli
