#include "app/tuning_file.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fcntl.h>

#include "app/environment.h"
#include "base/checksum.h"
#include "base/log.h"
#include "cache/whole_file.h"
#include "cli/machine.h"
#include "model/llama_params.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kMostBytes = 16 * 1024;
constexpr std::string_view kSum = "checksum ";

std::string hex_checksum(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : checksum(std::as_bytes(std::span(text)))) {
    out += kDigits[std::to_integer<unsigned>(byte) >> 4];
    out += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && line.starts_with("model name")) return line.substr(colon + 2);
  }
  return "unknown";
}

// A number and what follows it; nothing when there is none.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view name) {
  if (!text.starts_with(name)) return {};
  text.remove_prefix(name.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "rows 8 threads 2 microseconds 6600"
std::optional<ThreadFigure> read_figure(std::string_view line) {
  const auto rows = take_number(line, "rows ");
  const auto threads = take_number(line, " threads ");
  const auto took = take_number(line, " microseconds ");
  const auto is_count = [](std::optional<std::int64_t> n) { return n && *n > 0 && *n <= 1 << 20; };
  if (!is_count(rows) || !is_count(threads) || !took || *took <= 0 || *took > 3'600'000'000 || !line.empty()) return {};
  return ThreadFigure{static_cast<std::int32_t>(*rows), static_cast<std::int32_t>(*threads), microseconds(*took)};
}

std::string figures_in_lines(const ThreadFigures& figures) {
  std::string out;
  for (const ThreadFigure& figure : figures) {
    const auto took = std::chrono::ceil<microseconds>(figure.took).count();
    out += "rows " + std::to_string(figure.rows) + " threads " + std::to_string(figure.threads) + " microseconds " +
           std::to_string(took) + '\n';
  }
  return out;
}

}  // namespace

TuningFile::TuningFile(std::string folder, std::string of)
    : folder_(std::move(folder)), of_("chasqui tuning 1\n" + std::move(of)), name_("threads-" + hex_checksum(of_)) {}

ThreadFigures TuningFile::read() const {
  if (folder_.empty()) return {};
  const FileDescriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return {};
  const auto bytes = read_whole(folder.get(), name_, kMostBytes);
  if (!bytes) return {};
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto ignore = [this](const char* why) {
    log_warning("what was measured at an earlier start is ignored", {{"file", folder_ + '/' + name_}, {"why", why}});
    return ThreadFigures();
  };
  const std::size_t sum_at = text.rfind(kSum);
  if (sum_at == std::string_view::npos || text.substr(sum_at + kSum.size()) != hex_checksum(text.substr(0, sum_at))) {
    return ignore("it is damaged");
  }
  text = text.substr(0, sum_at);
  if (!text.starts_with(of_)) return ignore("it is of something else");
  text.remove_prefix(of_.size());
  ThreadFigures figures;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto figure = read_figure(text.substr(0, end));
    if (!figure || end == std::string_view::npos) return ignore("it has a line that means nothing");
    figures.push_back(*figure);
    text.remove_prefix(end + 1);
  }
  return figures;
}

void TuningFile::write(const ThreadFigures& figures) const {
  if (folder_.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  const FileDescriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string text = of_ + figures_in_lines(figures);
  const std::string sum = std::string(kSum) + hex_checksum(text);
  Result<void> written = Error{ErrorCode::unavailable, "there is no such folder", ""};
  if (folder.is_open()) {
    written = write_whole(folder.get(), name_, {std::as_bytes(std::span(text)), std::as_bytes(std::span(sum))});
  }
  if (!written) {
    log_info("what was measured cannot be kept for the next start",
             {{"folder", folder_}, {"why", written.error().message}});
  }
}

std::string tuning_folder(const ServeConfig& config) {
  if (!config.keep_tuning) return {};
  if (!config.tuning_cache.empty()) return config.tuning_cache;
  // The built-in model is measured within a tenth of a second, and who only tries it is left with no file.
  if (config.model_path.empty()) return {};
  // Relative ones are to be ignored, says the XDG Base Directory Specification.
  const std::string caches = variable_text("XDG_CACHE_HOME");
  if (caches.starts_with('/')) return caches + "/chasqui/tuning";
  const std::string home = variable_text("HOME");
  return home.starts_with('/') ? home + "/.cache/chasqui/tuning" : "";
}

std::string tuned_for(const ServeConfig& config, const ModelInfo& model, const ModelConfig& context) {
  std::string out = std::string("version ") + CHASQUI_VERSION + ", " + describe_llama_runtime() + '\n';
  out += "processor " + cpu_name() + ", cores " + std::to_string(default_threads());
  if (const auto cores = cli::look_at_machine().group_cores)
    out += ", of a group that may use " + std::to_string(*cores);
  out += "\nmodel " + model.description;
  const auto add = [&out](const char* name, std::int64_t value) {
    out += std::string(", ") + name + ' ' + std::to_string(value);
  };
  add("bytes", static_cast<std::int64_t>(model.size_bytes));
  add("layers", model.layers);
  add("width", model.embedding_length);
  add("vocabulary", model.vocabulary);
  add("GPU layers", config.gpu_layers);
  out += "\ncontext of " + std::to_string(config.workers) + " workers";
  add("slots", context.slots);
  add("cells", context.cells);
  add("unified", context.unified ? 1 : 0);
  add("rows", context.rows_max);
  add("threads", context.threads);
  add("threads of batches", context.threads_batch);
  add("polling", context.polling);
  add("flash attention", static_cast<int>(context.flash_attention));
  add("keys", static_cast<int>(context.kv_keys));
  add("values", static_cast<int>(context.kv_values));
  add("full windows", context.swa_full ? 1 : 0);
  return out + marks_of_speed(context.llama) + '\n';
}

}  // namespace chasqui
