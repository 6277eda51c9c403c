#include "api/body/adapter_fields.h"

#include <algorithm>
#include <filesystem>

#include "base/json_writer.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr double kScaleMax = 100;
constexpr std::string_view kForms = "the name of an adapter, {\"name\", \"scale\"}, or an array of {\"id\", \"scale\"}";

std::string known(const AdapterRegistry& registry) {
  return registry.empty() ? "; this server has no adapters" : "; this server has " + registry.names();
}

std::string one_of(const AdapterRegistry& registry) {
  return registry.empty() ? "left out" + known(registry) : "the name of an adapter" + known(registry);
}

// `place` is where the scale belongs; -1 after a mistake.
std::ptrdiff_t place_of(const AdapterRegistry& registry, Fields& fields) {
  if (fields.any("name") != nullptr) {
    const auto name = fields.string("name");
    const auto found = name ? registry.find(*name) : std::nullopt;
    if (!found) fields.refuse("name", one_of(registry));
    return found ? static_cast<std::ptrdiff_t>(*found) : -1;
  }
  const auto id = fields.integer("id");
  const auto count = static_cast<std::int64_t>(registry.adapters().size());
  if (id && *id >= 0 && *id < count) return static_cast<std::ptrdiff_t>(*id);
  fields.refuse("id", count == 0 ? "left out" + known(registry)
                                 : "a whole number between 0 and " + std::to_string(count - 1) + known(registry));
  return -1;
}

void read_use(const AdapterRegistry& registry, Fields& fields, std::vector<float>& scales) {
  const std::ptrdiff_t place = place_of(registry, fields);
  if (place < 0) return;
  const auto standing = static_cast<double>(registry.adapters()[static_cast<std::size_t>(place)].scale);
  const double scale = fields.number("scale").value_or(standing);
  if (!(scale >= -kScaleMax && scale <= kScaleMax)) fields.refuse("scale", "a number between -100 and 100");
  if (fields.ok()) scales[static_cast<std::size_t>(place)] = static_cast<float>(scale);
}

// What is not in the list is not used.
std::optional<Error> read_list(const AdapterRegistry& registry, const json::array& list, const std::string& path,
                               std::vector<float>& scales) {
  std::fill(scales.begin(), scales.end(), 0.0f);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item = path + '[' + std::to_string(i) + ']';
    if (!list[i].is_object()) return invalid_field(item, item + " must be an object with id and scale");
    Fields fields(list[i].get_object(), item);
    read_use(registry, fields, scales);
    if (!fields.ok()) return fields.error();
  }
  return std::nullopt;
}

void use_only(const AdapterRegistry& registry, std::size_t adapter, std::vector<float>& scales) {
  std::fill(scales.begin(), scales.end(), 0.0f);
  scales[adapter] = registry.adapters()[adapter].scale;
}

bool is_name_of(const ServedModelConfig& config, std::string_view name) {
  return name == config.name || std::ranges::find(config.aliases, name) != config.aliases.end();
}

enum class ByModel { no, by_name, in_full };

// "MODEL:name", or as vLLM has it "name", where that is not the model's own; other names of models are the client's
// affair.
ByModel read_model(const ServedModel& served, Fields& fields, std::vector<float>& scales) {
  const AdapterRegistry& registry = served.adapters;
  const std::string& own = served.config.name;
  const json::value* model = fields.any("model");
  if (model != nullptr && !model->is_string()) fields.refuse("model", "a string");
  if (model == nullptr || !model->is_string()) return ByModel::no;
  const std::string_view text = model->get_string();
  const bool prefixed = text.size() > own.size() && text.starts_with(own) && text[own.size()] == ':';
  if (is_name_of(served.config, text)) return ByModel::no;
  const auto found = registry.find(prefixed ? text.substr(own.size() + 1) : text);
  if (found) {
    use_only(registry, *found, scales);
  } else if (prefixed && text.substr(own.size()) != ":latest") {  // as Ollama's clients write it
    const std::string wanted = registry.empty() ? own : own + ":NAME";
    fields.refuse("model", wanted + known(registry));
  }
  if (!found) return ByModel::no;
  return prefixed ? ByModel::in_full : ByModel::by_name;
}

}  // namespace

void read_adapters(const ServedModel& served, Fields& fields, RequestDraft& draft) {
  const AdapterRegistry& registry = served.adapters;
  const json::value* lora = fields.any("lora");
  std::vector<float> scales(registry.adapters().size());
  const ByModel by_model = read_model(served, fields, scales);
  if (lora == nullptr) {
    if (by_model != ByModel::no) draft.adapters = registry.set_of(scales, by_model == ByModel::in_full);
    return;
  }
  if (lora->is_array()) {
    if (auto error = read_list(registry, lora->get_array(), fields.path_of("lora"), scales)) fields.refuse(*error);
  } else if (lora->is_object()) {
    std::fill(scales.begin(), scales.end(), 0.0f);
    Fields use(lora->get_object(), fields.path_of("lora"));
    read_use(registry, use, scales);
    if (!use.ok()) fields.refuse(use.error());
  } else if (lora->is_string()) {
    const auto found = registry.find(lora->get_string());
    if (!found) return fields.refuse("lora", one_of(registry));
    use_only(registry, *found, scales);
  } else {
    fields.refuse("lora", kForms);
  }
  if (fields.ok()) draft.adapters = registry.set_of(scales);
}

Result<std::vector<float>> read_standing_scales(const AdapterRegistry& registry, const std::string& body) {
  auto value = parse_json(body);
  if (!value) return value.error();
  if (!value->is_array()) {
    return Error{ErrorCode::invalid_request, "the body must be an array of {\"id\", \"scale\"}", ""};
  }
  std::vector<float> scales(registry.adapters().size());
  if (auto error = read_list(registry, value->get_array(), "", scales)) return *error;
  return scales;
}

std::string adapters_body(const AdapterRegistry& registry, bool paths) {
  const std::vector<float> scales = registry.standing_scales();
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const AdapterInfo& adapter = registry.adapters()[i];
    json.begin_object();
    json.field("id", i);
    json.field("name", adapter.name);
    json.field("path", paths ? adapter.path : std::filesystem::path(adapter.path).filename().string());
    json.field("scale", scales[i]);
    json.field("task_name", adapter.task_name);
    json.field("prompt_prefix", adapter.prompt_prefix);
    json.end_object();
  }
  json.end_array();
  return out;
}

}  // namespace chasqui
