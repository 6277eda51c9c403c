#include "capi/settings.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include <boost/json.hpp>

#include "api/body/fields.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::string_view kMembers[] = {"model",     "name",         "chat_template", "slots",
                                         "context",   "threads",      "workers",       "gpu_layers",
                                         "cache_mib", "cache_folder", "sessions",      "log"};

constexpr std::int64_t kMany = std::numeric_limits<std::int32_t>::max();

void refuse_strangers(const json::object& object, Fields& fields) {
  for (const auto& member : object) {
    const std::string_view name = member.key();
    if (std::ranges::find(kMembers, name) != std::end(kMembers)) continue;
    std::string all;
    for (const std::string_view known : kMembers) all += (all.empty() ? "" : ", ") + std::string(known);
    return fields.refuse(invalid_field(std::string(name), std::string(name) + " is no setting; there are " + all));
  }
}

// None: it is not there, or is refused.
std::optional<std::int64_t> within(Fields& fields, std::string_view name, std::int64_t least, std::int64_t most) {
  const auto value = fields.integer(name);
  if (!value) return std::nullopt;
  if (*value >= least && *value <= most) return value;
  fields.refuse(name, "a whole number between " + std::to_string(least) + " and " + std::to_string(most));
  return std::nullopt;
}

LogLevel read_level(Fields& fields) {
  const auto word = fields.string("log");
  if (!word || *word == "warning") return LogLevel::warning;
  if (*word == "off") return LogLevel::off;
  if (*word == "error") return LogLevel::error;
  if (*word == "info") return LogLevel::info;
  if (*word == "debug") return LogLevel::debug;
  fields.refuse("log", "off, error, warning, info or debug");
  return LogLevel::warning;
}

void read_sizes(Fields& fields, SessionEngineConfig& engine) {
  ModelConfig& model = engine.model;
  if (const auto slots = within(fields, "slots", 1, 256)) model.slots = static_cast<std::int32_t>(*slots);
  if (const auto context = within(fields, "context", 2, kMany / model.slots)) {
    model.cells = static_cast<TokenCount>(*context) * model.slots;
  }
  if (const auto threads = within(fields, "threads", 1, 512)) model.threads = static_cast<std::int32_t>(*threads);
  if (const auto workers = within(fields, "workers", 1, 64)) engine.workers = static_cast<std::size_t>(*workers);
  if (const auto mib = within(fields, "cache_mib", 0, std::int64_t{1} << 30)) {
    engine.engine.reuse.cache.bytes = static_cast<std::size_t>(*mib) << 20;
  }
  if (const auto sessions = within(fields, "sessions", 0, 1 << 20)) {
    engine.sessions = static_cast<std::size_t>(*sessions);
  }
}

}  // namespace

Result<EngineSettings> read_engine_settings(const std::string& text) {
  auto object = parse_json_object(text);
  if (!object) return Error{object.error().code, "settings: " + object.error().message, ""};
  Fields fields(*object);
  EngineSettings out;
  refuse_strangers(*object, fields);
  if (const auto model = fields.string("model")) {
    out.model = *model;
    if (model->empty()) fields.refuse("model", "the path of a GGUF file, or left out for the demo model");
  }
  out.name = fields.string("name").value_or("");
  out.load.chat_template = fields.string("chat_template").value_or("");
  if (const auto layers = within(fields, "gpu_layers", 0, kMany)) {
    out.load.weights.gpu_layers = static_cast<std::int32_t>(*layers);
  }
  out.engine.cache_folder = fields.string("cache_folder").value_or("");
  read_sizes(fields, out.engine);
  out.log = read_level(fields);
  if (!fields.ok()) return fields.error();
  return out;
}

}  // namespace chasqui
