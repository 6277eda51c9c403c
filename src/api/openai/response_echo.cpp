#include "api/openai/response_echo.h"

#include <string_view>

#include "base/json_writer.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

// A field, what stands there where the request has none, and how long it may be.
struct Echoed {
  std::string_view name;
  std::string_view unsaid;
  std::size_t bytes_max;
};

constexpr std::size_t kFieldBytes = kSizeLimit<"response_field_bytes">;
constexpr std::size_t kToolBytes = kSizeLimit<"response_tool_bytes">;

// Texts that the model reads are bounded by its context, a schema by its own limit.
constexpr Echoed kEchoed[] = {
    {"instructions", "null", kSizeLimit<"body_bytes">},
    {"max_output_tokens", "null", kFieldBytes},
    {"metadata", "{}", kFieldBytes},
    {"parallel_tool_calls", "true", kFieldBytes},
    {"previous_response_id", "null", kFieldBytes},
    {"reasoning", R"({"effort":null,"summary":null})", kFieldBytes},
    {"text", R"({"format":{"type":"text"}})", kFieldBytes + kSizeLimit<"grammar_bytes">},
    {"tool_choice", "\"auto\"", kFieldBytes + kSizeLimit<"grammar_bytes">},
    {"truncation", "\"disabled\"", kFieldBytes},
    {"user", "null", kFieldBytes},
    {"max_tool_calls", "null", kFieldBytes},
    {"service_tier", "\"default\"", kFieldBytes},
    {"safety_identifier", "null", kFieldBytes},
    {"prompt_cache_key", "null", kFieldBytes},
};

// A number as a client wrote it: 0.8, not the nearest float.
std::string number_text(float value) {
  std::string out;
  append_json_number(out, value);
  return out;
}

Error too_long(std::string_view name, std::size_t bytes_max) {
  return invalid_field(std::string(name), std::string(name) + " may have at most " + std::to_string(bytes_max) +
                                              " bytes as JSON, since the answer repeats it");
}

// The tools with all members that OpenAI's schema of a response wants; null where the client has left one out. Those
// that the model is not shown have a limit of their own; the others have those of tools.
Result<std::string> echo_of_tools(const json::object& body) {
  const json::value* tools = body.if_contains("tools");
  if (tools == nullptr || !tools->is_array()) return std::string("[]");
  std::string out = "[";
  std::size_t skipped = 0;
  for (json::value tool : tools->get_array()) {
    json::object* object = tool.if_object();
    const bool function = object != nullptr && object->at("type") == "function";
    if (function) {
      for (const char* const name : {"description", "parameters", "strict"}) object->emplace(name, nullptr);
    }
    const std::string text = json::serialize(tool);
    skipped += function ? 0 : text.size();
    if (skipped > kToolBytes) return too_long("tools", kToolBytes);
    if (out.size() > 1) out += ',';
    out += text;
  }
  return out + ']';
}

}  // namespace

Result<std::string> echo_of(const json::object& body, const SamplingParams& sampling, bool stored) {
  std::string out;
  for (const auto& [name, unsaid, bytes_max] : kEchoed) {
    const json::value* value = body.if_contains(name);
    const bool said = value != nullptr && !value->is_null();
    const std::string text = said ? json::serialize(*value) : std::string(unsaid);
    if (text.size() > bytes_max) return too_long(name, bytes_max);
    out += ",\"" + std::string(name) + "\":" + text;
  }
  const auto tools = echo_of_tools(body);
  if (!tools) return tools.error();
  out += ",\"tools\":" + *tools;
  out += ",\"background\":false,\"top_logprobs\":0,\"store\":";
  out += stored ? "true" : "false";
  out += ",\"temperature\":" + number_text(sampling.temperature);
  out += ",\"top_p\":" + number_text(sampling.top_p);
  out += ",\"presence_penalty\":" + number_text(sampling.presence_penalty);
  out += ",\"frequency_penalty\":" + number_text(sampling.frequency_penalty);
  return out;
}

}  // namespace chasqui
