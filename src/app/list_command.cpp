#include "app/list_command.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "app/model_search.h"
#include "base/json_writer.h"
#include "cli/machine.h"
#include "cli/terminal.h"
#include "cli/text_table.h"

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
  std::vector<std::vector<std::string>> rows = {{"NAME", "SIZE", "FORMAT", "FROM"}};
  for (const cli::FoundModel& model : found) {
    rows.push_back(
        {cli::harmless(model.name), cli::bytes_in_words(model.bytes), cli::harmless(model.format), model.from});
  }
  return cli::text_table(std::move(rows));
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
