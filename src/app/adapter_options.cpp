#include "app/adapter_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include <CLI/CLI.hpp>

namespace chasqui {
namespace {

// What follows the last colon, when that is not part of a path.
std::optional<std::string> take_last_part(std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || text.find('/', colon) != std::string::npos) return std::nullopt;
  std::string part = text.substr(colon + 1);
  text.resize(colon);
  return part;
}

std::optional<float> number(const std::string& text) {
  float value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

AdapterFile plain_file(std::string text) {
  AdapterFile file;
  if (!std::filesystem::exists(text)) file.name = take_last_part(text).value_or("");
  file.path = std::move(text);
  return file;
}

Result<AdapterFile> scaled_file(const std::string& text) {
  AdapterFile file;
  file.path = text;
  auto last = take_last_part(file.path);
  if (last && !number(*last)) {
    file.name = *last;
    last = take_last_part(file.path);
  }
  const auto scale = last ? number(*last) : std::nullopt;
  if (!scale || !(*scale >= -100 && *scale <= 100)) {
    return invalid_field(
        "--lora-scaled",
        "--lora-scaled " + text + " must be FILE:SCALE or FILE:SCALE:NAME, with a scale between -100 and 100");
  }
  file.scale = *scale;
  return file;
}

}  // namespace

void add_adapter_options(CLI::App& app, AdapterFlags& flags) {
  app.option_defaults()->group("Adapters");
  app.add_option("--lora", flags.plain,
                 "LoRA adapter that requests may choose by name (the file's, if none is given); several with commas")
      ->envname("LLAMA_ARG_LORA")
      ->delimiter(',')
      ->type_name("FILE[:NAME]");
  app.add_option("--lora-scaled", flags.scaled, "the same with a scale of its own")
      ->envname("LLAMA_ARG_LORA_SCALED")
      ->delimiter(',')
      ->type_name("FILE:SCALE[:NAME]");
  app.add_flag("!--lora-init-without-apply", flags.apply, "requests that name no adapter get the model alone")
      ->envname("LLAMA_ARG_LORA_INIT_WITHOUT_APPLY");
}

Result<std::vector<AdapterFile>> adapter_files(const AdapterFlags& flags) {
  std::vector<AdapterFile> files;
  for (const std::string& text : flags.plain) files.push_back(plain_file(text));
  for (const std::string& text : flags.scaled) {
    auto file = scaled_file(text);
    if (!file) return file.error();
    files.push_back(std::move(*file));
  }
  for (auto file = files.begin(); file != files.end(); ++file) {
    if (file->name.empty()) file->name = std::filesystem::path(file->path).stem().string();
    const auto same = [&](const AdapterFile& other) { return other.name == file->name; };
    if (std::any_of(files.begin(), file, same)) {
      return invalid_field("--lora", "--lora: two adapters are called " + file->name + "; name one with FILE:NAME");
    }
  }
  return files;
}

}  // namespace chasqui
