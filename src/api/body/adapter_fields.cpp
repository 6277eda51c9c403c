#include "api/body/adapter_fields.h"

#include <algorithm>
#include <filesystem>

#include "api/core/model_table.h"
#include "base/json_writer.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr double kScaleMax = 100;
constexpr std::size_t kNameBytes = kSizeLimit<"adapter_name_bytes">;
constexpr std::string_view kForms = "the name of an adapter, {\"name\", \"scale\"}, or an array of {\"id\", \"scale\"}";

std::string known(const AdapterList& adapters) {
  return adapters.empty() ? "; this server has no adapters" : "; this server has " + adapters.names();
}

std::string one_of(const AdapterList& adapters) {
  return adapters.empty() ? "left out" + known(adapters) : "the name of an adapter" + known(adapters);
}

// After some were unloaded there are gaps.
std::string ids_of(const AdapterList& adapters) {
  const std::int32_t last = adapters.all().back().info.place;
  if (static_cast<std::size_t>(last) + 1 == adapters.size()) {
    return "a whole number between 0 and " + std::to_string(last);
  }
  std::string out = "one of";
  for (const ListedAdapter& one : adapters.all()) out += ' ' + std::to_string(one.info.place);
  return out;
}

// Where in the list it is; -1 after a mistake.
std::ptrdiff_t place_of(const AdapterList& adapters, Fields& fields) {
  if (fields.any("name") != nullptr) {
    const auto name = fields.string("name");
    const auto found = name ? adapters.find(*name) : std::nullopt;
    if (!found) fields.refuse("name", one_of(adapters));
    return found ? static_cast<std::ptrdiff_t>(*found) : -1;
  }
  const auto id = fields.integer("id");
  const auto found = id ? adapters.at_place(*id) : std::nullopt;
  if (found) return static_cast<std::ptrdiff_t>(*found);
  fields.refuse("id", adapters.empty() ? "left out" + known(adapters) : ids_of(adapters) + known(adapters));
  return -1;
}

void read_use(const AdapterList& adapters, Fields& fields, std::vector<float>& scales) {
  const std::ptrdiff_t place = place_of(adapters, fields);
  if (place < 0) return;
  const auto standing = static_cast<double>(adapters[static_cast<std::size_t>(place)].scale);
  const double scale = fields.number("scale").value_or(standing);
  if (!(scale >= -kScaleMax && scale <= kScaleMax)) fields.refuse("scale", "a number between -100 and 100");
  if (fields.ok()) scales[static_cast<std::size_t>(place)] = static_cast<float>(scale);
}

// What is not in the list is not used.
std::optional<Error> read_list(const AdapterList& adapters, const json::array& list, const std::string& path,
                               std::vector<float>& scales) {
  std::fill(scales.begin(), scales.end(), 0.0f);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item = path + '[' + std::to_string(i) + ']';
    if (!list[i].is_object()) return invalid_field(item, item + " must be an object with id and scale");
    Fields fields(list[i].get_object(), item);
    read_use(adapters, fields, scales);
    if (!fields.ok()) return fields.error();
  }
  return std::nullopt;
}

void use_only(const AdapterList& adapters, std::size_t adapter, std::vector<float>& scales) {
  std::fill(scales.begin(), scales.end(), 0.0f);
  scales[adapter] = adapters[adapter].scale;
}

bool is_name_of(const ServedModelConfig& config, std::string_view name) {
  return name == config.name || std::ranges::find(config.aliases, name) != config.aliases.end();
}

enum class ByModel { no, by_name, in_full };

// "MODEL:name", or as vLLM has it "name", where that is not the model's own; other names of models are the client's
// affair.
ByModel read_model(const ServedModelConfig& config, const AdapterList& adapters, Fields& fields,
                   std::vector<float>& scales) {
  const std::string& own = config.name;
  const json::value* model = fields.any("model");
  if (model != nullptr && !model->is_string()) fields.refuse("model", "a string");
  if (model == nullptr || !model->is_string()) return ByModel::no;
  const std::string_view text = model->get_string();
  const bool prefixed = text.size() > own.size() && text.starts_with(own) && text[own.size()] == ':';
  if (is_name_of(config, text)) return ByModel::no;
  constexpr std::string_view kLatest = ":latest";  // as Ollama's clients write it
  const std::string_view asked = prefixed ? text.substr(own.size() + 1) : text;
  auto found = adapters.find(asked);
  if (!found && asked.ends_with(kLatest)) found = adapters.find(asked.substr(0, asked.size() - kLatest.size()));
  if (found) {
    use_only(adapters, *found, scales);
  } else if (prefixed && text.substr(own.size()) != kLatest) {
    const std::string wanted = adapters.empty() ? own : own + ":NAME";
    fields.refuse("model", wanted + known(adapters));
  }
  if (!found && adapters.was_unloaded(text)) {
    fields.refuse(Error{ErrorCode::not_found, "the adapter " + std::string(text) + " was unloaded", "model"});
  }
  if (!found) return ByModel::no;
  return prefixed ? ByModel::in_full : ByModel::by_name;
}

}  // namespace

void read_adapters(const ServedModel& served, Fields& fields, RequestDraft& draft) {
  const AdapterListPtr list = served.adapters.list();
  const AdapterList& adapters = *list;
  const json::value* lora = fields.any("lora");
  std::vector<float> scales(adapters.size());
  const ByModel by_model = read_model(served.config, adapters, fields, scales);
  if (lora == nullptr) {
    if (by_model != ByModel::no) draft.adapters = adapters.set_of(scales, by_model == ByModel::in_full);
    return;
  }
  if (lora->is_array()) {
    if (auto error = read_list(adapters, lora->get_array(), fields.path_of("lora"), scales)) fields.refuse(*error);
  } else if (lora->is_object()) {
    std::fill(scales.begin(), scales.end(), 0.0f);
    Fields use(lora->get_object(), fields.path_of("lora"));
    read_use(adapters, use, scales);
    if (!use.ok()) fields.refuse(use.error());
  } else if (lora->is_string()) {
    const auto found = adapters.find(lora->get_string());
    if (!found) return fields.refuse("lora", one_of(adapters));
    use_only(adapters, *found, scales);
  } else {
    fields.refuse("lora", kForms);
  }
  if (fields.ok()) draft.adapters = adapters.set_of(scales);
}

Result<std::vector<float>> read_standing_scales(const AdapterList& adapters, const std::string& body) {
  auto value = parse_json(body);
  if (!value) return value.error();
  if (!value->is_array()) {
    return Error{ErrorCode::invalid_request, "the body must be an array of {\"id\", \"scale\"}", ""};
  }
  std::vector<float> scales(adapters.size());
  if (auto error = read_list(adapters, value->get_array(), "", scales)) return *error;
  return scales;
}

std::string path_of_adapter(const AdapterInfo& adapter, bool paths) {
  return paths ? adapter.path : std::filesystem::path(adapter.path).filename().string();
}

std::string adapters_body(const AdapterList& adapters, bool paths) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const auto& [adapter, standing, lease] : adapters.all()) {
    json.begin_object();
    json.field("id", adapter.place);
    json.field("name", adapter.name);
    json.field("path", path_of_adapter(adapter, paths));
    json.field("scale", standing);
    json.field("task_name", adapter.task_name);
    json.field("prompt_prefix", adapter.prompt_prefix);
    json.end_object();
  }
  json.end_array();
  return out;
}

Result<AdapterOrder> read_adapter_order(const std::string& body, bool loads) {
  const auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  AdapterOrder order;
  order.model = fields.string("model").value_or("");
  if (!may_name_model(order.model)) fields.refuse(no_model_of_long_name());
  order.name = fields.string("lora_name").value_or("");
  if (order.name.empty()) fields.refuse("lora_name", "the name of an adapter");
  if (loads) {
    const bool plain = std::ranges::none_of(order.name, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
    if (!plain || order.name.size() > kNameBytes) {
      fields.refuse("lora_name", "at most " + std::to_string(kNameBytes) + " bytes without control characters");
    }
    order.path = fields.string("lora_path").value_or("");
    if (order.path.empty() || order.path.find('\0') != std::string::npos) {
      fields.refuse("lora_path", "the path of a GGUF file with an adapter");
    }
    order.in_place = fields.boolean("load_inplace").value_or(false);
  }
  if (!fields.ok()) return fields.error();
  return order;
}

}  // namespace chasqui
