#include "app/list_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "app/model_search.h"
#include "base/json_writer.h"
#include "cli/machine.h"
#include "cli/terminal.h"

namespace chasqui {
namespace {

std::string found_json(const std::vector<cli::FoundModel>& found) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const cli::FoundModel& model : found) {
    json.begin_object();
    json.field("name", model.name);
    json.field("bytes", model.bytes);
    json.field("format", model.format);
    json.field("from", model.from);
    json.field("path", model.path);
    json.end_object();
  }
  json.end_array();
  return out + "\n";
}

std::string found_text(const std::vector<cli::FoundModel>& found) {
  std::vector<std::array<std::string, 4>> rows = {{"NAME", "SIZE", "FORMAT", "FROM"}};
  for (const cli::FoundModel& model : found) {
    rows.push_back(
        {cli::harmless(model.name), cli::bytes_in_words(model.bytes), cli::harmless(model.format), model.from});
  }
  std::array<std::size_t, 4> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      row[i].resize(widths[i], ' ');
      out += row[i] + "  ";
    }
    out += row.back() + '\n';
  }
  return out;
}

}  // namespace

int run_list(const std::string& folder, bool json) {
  const cli::ModelFolders folders = folders_of_models();
  auto found =
      folder.empty() ? Result<std::vector<cli::FoundModel>>(cli::find_models(folders)) : cli::models_in_folder(folder);
  if (!found) {
    std::fprintf(stderr, "chasqui list: %s\n", cli::harmless(found.error().message).c_str());
    return 1;
  }
  if (found->empty() && !json) {
    const std::string looked = folder.empty() ? folders.in_words() : folder;
    std::fprintf(stderr, "chasqui list: no models in %s\n", cli::harmless(looked).c_str());
    return 0;
  }
  cli::write_out(json ? found_json(*found) : found_text(*found));
  return 0;
}

}  // namespace chasqui
