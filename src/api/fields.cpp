#include "api/fields.h"

#include <cmath>

#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kJsonDepthMax = kSizeLimit<"json_depth">;

// Doubles up to here hold every whole number exactly.
constexpr double kExactMax = 9007199254740992.0;

}  // namespace

Result<json::value> parse_json(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Error{ErrorCode::invalid_request, "the body is empty; a JSON object is expected", ""};
  }
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::error_code failed;
  json::stream_parser parser({}, options);
  parser.write(body.data(), body.size(), failed);
  if (!failed) parser.finish(failed);
  if (failed == json::error::too_deep) {
    return Error{ErrorCode::invalid_request,
                 "the body is nested too deeply; at most " + std::to_string(kJsonDepthMax) + " levels are allowed", ""};
  }
  if (failed) {
    return Error{ErrorCode::invalid_request, "the body is not valid JSON: " + failed.message(), ""};
  }
  return parser.release();
}

Result<json::object> parse_json_object(std::string_view body) {
  auto value = parse_json(body);
  if (!value) return value.error();
  if (!value->is_object()) return Error{ErrorCode::invalid_request, "the body must be a JSON object", ""};
  return std::move(value->as_object());
}

const json::value* Fields::any(std::string_view name) const {
  const json::value* value = object_.if_contains(name);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  refuse(name, "true or false");
  return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return value->get_int64();
  if (value->is_double()) {
    const double number = value->get_double();
    if (number == std::trunc(number) && std::fabs(number) <= kExactMax) return static_cast<std::int64_t>(number);
  }
  refuse(name, "a whole number");
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return static_cast<double>(value->get_int64());
  if (value->is_uint64()) return static_cast<double>(value->get_uint64());
  if (value->is_double() && std::isfinite(value->get_double())) return value->get_double();
  refuse(name, "a number");
  return std::nullopt;
}

std::optional<std::string_view> Fields::string(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string_view(value->get_string());
  refuse(name, "a string");
  return std::nullopt;
}

const json::array* Fields::array(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return nullptr;
  if (value->is_array()) return &value->get_array();
  refuse(name, "an array");
  return nullptr;
}

const json::object* Fields::object(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return &value->get_object();
  refuse(name, "an object");
  return nullptr;
}

void Fields::refuse(std::string_view name, std::string_view allowed) {
  if (error_) return;
  std::string field = path_of(name);
  std::string message = field + " must be " + std::string(allowed);
  error_ = invalid_field(std::move(field), std::move(message));
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + '.' + std::string(name);
}

}  // namespace chasqui
