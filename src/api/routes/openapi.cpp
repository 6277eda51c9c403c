#include "api/routes/openapi.h"

#include <algorithm>
#include <map>

#include "api/body/generation_fields.h"
#include "api/core/errors.h"
#include "base/ascii.h"
#include "base/json_writer.h"
#include "core/sampling.h"

namespace chasqui {
namespace {

constexpr ErrorCode kErrors[] = {ErrorCode::invalid_request, ErrorCode::context_too_long, ErrorCode::unauthorized,
                                 ErrorCode::forbidden,       ErrorCode::not_found,        ErrorCode::conflict,
                                 ErrorCode::too_large,       ErrorCode::quota_exceeded,   ErrorCode::overloaded,
                                 ErrorCode::unavailable,     ErrorCode::model_failure,    ErrorCode::not_supported,
                                 ErrorCode::storage_full,    ErrorCode::internal};

// JSON Schema of the generation fields that are no numbers of sampling_rules().
struct FieldType {
  std::string_view field;
  std::string_view schema;
};
constexpr std::string_view kBoolean = R"("type":"boolean")";
constexpr std::string_view kInteger = R"("type":"integer")";
constexpr std::string_view kString = R"("type":"string")";
constexpr std::string_view kObject = R"("type":"object")";
constexpr FieldType kTypes[] = {
    {"max_tokens", R"("type":"integer","minimum":-1)"},
    {"dry_sequence_breakers", R"("type":"array","items":{"type":"string"},"maxItems":32)"},
    {"samplers", R"("type":["array","string"],"items":{"type":"string"})"},
    {"seed", kInteger},
    {"logit_bias", R"("type":["object","array"])"},
    {"ignore_eos", kBoolean},
    {"stop", R"("type":["string","array"],"items":{"type":"string"},"maxItems":64)"},
    {"stop_token_ids", R"("type":"array","items":{"type":"integer"},"maxItems":64)"},
    {"n_probs", R"("type":"integer","minimum":0,"maximum":100)"},
    {"post_sampling_probs", kBoolean},
    {"grammar", kString},
    {"json_schema", R"("type":["object","boolean"])"},
    {"schema_order", R"("type":"string","enum":["written","any"])"},
    {"response_format", kObject},
    {"stream", kBoolean},
    {"timings_per_token", kBoolean},
    {"return_progress", kBoolean},
    {"cache_prompt", kBoolean},
    {"return_cache", kBoolean},
    {"deterministic", kBoolean},
    {"id_slot", R"("type":"integer","minimum":-1)"},
    {"timeout_ms", R"("type":"integer","minimum":1)"},
    {"t_max_prompt_ms", R"("type":"integer","minimum":-1)"},
    {"ttft_timeout_ms", R"("type":"integer","minimum":-1)"},
    {"t_max_predict_ms", R"("type":"integer","minimum":-1)"},
    {"priority", R"("type":["string","integer"])"},
    {"service_tier", R"("type":"string")"},
    {"sse_ping_interval", R"("type":"integer","minimum":-1)"},
    {"n_keep", R"("type":"integer","minimum":-1)"},
    {"n_discard", R"("type":"integer","minimum":0)"},
    {"n_cache_reuse", R"("type":"integer","minimum":0)"},
    {"n_indent", kInteger},
};

// Calls what(name) for each of "a, b".
template <class What>
void each_of(std::string_view names, const What& what) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(", "), names.size());
    what(names.substr(0, end));
    names.remove_prefix(std::min(end + 2, names.size()));
  }
}

void write_rule(JsonWriter& json, const SamplingRule& rule) {
  const bool real = rule.real != nullptr;
  json.field("type", real ? "number" : "integer");
  const auto number = [&](std::string_view name, double value) {
    json.key(name);
    if (real) {
      json.number(static_cast<float>(value));
    } else {
      json.number(static_cast<std::int64_t>(value));
    }
  };
  number("minimum", rule.minimum);
  number("maximum", rule.maximum);
  number("default", rule.read(SamplingParams{}));
}

void write_field(JsonWriter& json, const GenerationField& field, std::string_view name) {
  json.begin_object(name);
  const auto rules = sampling_rules();
  const auto rule = std::ranges::find(rules, field.name, &SamplingRule::field);
  if (field.read == nullptr && rule != rules.end()) write_rule(json, *rule);
  std::string text(field.meaning);
  const auto add = [&text](std::string_view what, std::string_view value) {
    if (!value.empty()) text += (text.empty() ? "" : ". ") + std::string(what) + ": " + std::string(value);
  };
  add("Allowed", field.allowed);
  add("Default", field.fallback);
  if (name != field.name) add("The same as", field.name);
  json.field("description", text);
  json.end_object();
}

std::string field_schema() {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("type", "object");
  json.field("description", "What every generating route takes. Fields of the route itself stand in docs/api.md.");
  json.begin_object("properties");
  for (const GenerationField& field : generation_fields()) {
    if (field.name.find('.') != std::string_view::npos) continue;  // a member of an object
    const auto type = std::ranges::find(kTypes, field.name, &FieldType::field);
    const auto write = [&](std::string_view name) {
      std::string schema;
      JsonWriter one(schema);
      one.begin_object();
      write_field(one, field, name);
      one.end_object();
      // {"name":{…}} → the type goes first into the inner object.
      std::string inner = schema.substr(schema.find(':') + 1);
      inner.pop_back();
      if (type != std::end(kTypes)) inner.insert(1, std::string(type->schema) + ",");
      json.raw(name, inner);
    };
    write(field.name);
    each_of(field.aliases, write);
  }
  json.raw("stream_options", R"({"type":"object","properties":{"include_usage":{"type":"boolean"}}})");
  json.end_object();
  json.end_object();
  return out;
}

// One response for each status of the error table, with the types that it may have.
std::map<int, std::string> errors_by_status() {
  std::map<int, std::string> out;
  for (const ErrorCode code : kErrors) {
    const ErrorRow row = error_row(code);
    std::string& text = out[row.status];
    const std::string type(row.type);
    if (text.find(type) == std::string::npos) text += (text.empty() ? "" : ", ") + type;
  }
  return out;
}

void write_components(JsonWriter& json) {
  json.begin_object("components");
  json.key("securitySchemes");
  json.raw(R"({"bearer":{"type":"http","scheme":"bearer"},)"
           R"("header":{"type":"apiKey","in":"header","name":"X-Api-Key"}})");
  json.begin_object("schemas");
  json.raw("GenerationFields", field_schema());
  json.key("Error");
  json.raw(R"({"type":"object","required":["error"],"properties":{"error":{"type":"object",)"
           R"("required":["code","message","type"],"properties":{"code":{"type":["integer","string"]},)"
           R"("message":{"type":"string"},"type":{"type":"string"},"param":{"type":["string","null"]}}}}})");
  json.end_object();
  json.begin_object("responses");
  for (const auto& [status, types] : errors_by_status()) {
    json.begin_object("Error" + std::to_string(status));
    json.field("description", types);
    json.raw("content", R"({"application/json":{"schema":{"$ref":"#/components/schemas/Error"}}})");
    json.end_object();
  }
  json.end_object();
  json.end_object();
}

std::string method_word(net::HttpMethod method) {
  std::string out(net::name(method));
  std::ranges::transform(out, out.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return out;
}

// "getV1SessionsId": unique, since it has the method and the whole path.
std::string operation_id(const Route& route) {
  std::string out = method_word(route.method);
  bool upper = true;
  for (const char c : route.path) {
    const bool word = is_ascii_word(c);
    if (word) out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    upper = !word;
  }
  return out;
}

void write_parameters(JsonWriter& json, std::string_view path, std::string_view query) {
  if (path.find('{') == std::string_view::npos && query.empty()) return;
  json.begin_array("parameters");
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    const std::string name(path.substr(at + 1, path.find('}', at) - at - 1));
    json.raw(R"({"name":")" + name + R"(","in":"path","required":true,"schema":{"type":"string"}})");
  }
  each_of(query, [&](std::string_view name) {
    json.raw(R"({"name":")" + std::string(name) + R"(","in":"query","schema":{"type":"string"}})");
  });
  json.end_array();
}

std::string body_schema(const RouteText& text) {
  std::string own = R"({"type":"object","required":[)";
  std::string properties;
  std::string required;
  each_of(text.required, [&](std::string_view name) {
    required += (required.empty() ? "\"" : ",\"") + std::string(name) + '"';
    properties += (properties.empty() ? "\"" : ",\"") + std::string(name) + "\":{}";
  });
  own += required + R"(],"properties":{)" + properties + "}}";
  if (!text.generates) return own;
  return R"({"allOf":[{"$ref":"#/components/schemas/GenerationFields"},)" + own + "]}";
}

void write_operation(JsonWriter& json, const Route& route) {
  const RouteText& text = route.text;
  const bool open = route.access == Access::open;
  json.begin_object(method_word(route.method));
  json.field("operationId", operation_id(route));
  json.field("summary", text.summary);
  if (open) {
    json.raw("security", "[]");
  }
  write_parameters(json, route.path, text.query);
  if (route.method == net::HttpMethod::post && text.body) {
    json.key("requestBody");
    const std::string type(text.accepts.empty() ? "application/json" : text.accepts);
    json.raw(R"({"required":true,"content":{")" + type + R"(":{"schema":)" + body_schema(text) + "}}}");
  }
  json.begin_object("responses");
  const bool empty = text.answer == "204";
  json.begin_object(empty ? "204" : "200");
  json.field("description", empty ? "done" : "the answer");
  if (!empty) {
    json.begin_object("content");
    json.raw(text.answer.empty() ? "application/json" : text.answer, "{}");
    if (text.generates) {
      json.raw("text/event-stream", "{}");
    }
    json.end_object();
  }
  json.end_object();
  for (const auto& [status, types] : errors_by_status()) {
    if (open && status != 503) continue;
    json.raw(std::to_string(status), R"({"$ref":"#/components/responses/Error)" + std::to_string(status) + "\"}");
  }
  json.end_object();
  json.end_object();
}

}  // namespace

std::string openapi_document(std::span<const Route> routes, std::string_view prefix) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("openapi", "3.1.0");
  json.key("info");
  json.raw(R"({"title":"Chasqui","version":"1","description":"Serves GGUF language models to many clients at once. )"
           R"(See docs/api.md.","license":{"name":"MIT","identifier":"MIT"}})");
  json.begin_array("servers");
  json.begin_object();
  json.field("url", prefix.empty() ? "/" : prefix);
  json.end_object();
  json.end_array();
  json.raw("security", R"([{"bearer":[]},{"header":[]}])");
  json.begin_object("paths");
  std::vector<std::string_view> written;
  for (const Route& first : routes) {
    if (std::ranges::find(written, first.path) != written.end()) continue;
    written.push_back(first.path);
    json.begin_object(first.path);
    for (const Route& route : routes) {
      if (route.path == first.path) write_operation(json, route);
    }
    json.end_object();
  }
  json.end_object();
  write_components(json);
  json.end_object();
  return out;
}

}  // namespace chasqui
