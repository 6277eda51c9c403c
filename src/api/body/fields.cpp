#include "api/body/fields.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <boost/json/basic_parser_impl.hpp>

#include "base/freed_memory.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kJsonDepthMax = kSizeLimit<"json_depth">;

constexpr std::size_t kJsonNodesMax = kSizeLimit<"json_nodes">;
constexpr std::size_t kLargeBody = 1024 * 1024;  // whose tree leaves much behind

// Doubles up to here hold every whole number exactly.
constexpr double kFieldExactMax = 9007199254740992.0;

// Of characters outside of strings: each value but the first of its array or object follows a comma, each value of a
// member a colon.
constexpr std::array<bool, 256> kBeginsNode = [] {
  std::array<bool, 256> out{};
  for (const unsigned char c : {'[', '{', ',', ':'}) out[c] = true;
  return out;
}();

// Takes JSON and keeps nothing of it.
struct JsonChecker {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  using Code = json::error_code;
  using Text = json::string_view;

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t, Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_key_part(Text, std::size_t, Code&) { return true; }
  bool on_key(Text, std::size_t, Code&) { return true; }
  bool on_string_part(Text, std::size_t, Code&) { return true; }
  bool on_string(Text, std::size_t, Code&) { return true; }
  bool on_number_part(Text, Code&) { return true; }
  bool on_int64(std::int64_t, Text, Code&) { return true; }
  bool on_uint64(std::uint64_t, Text, Code&) { return true; }
  bool on_double(double, Text, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }
};

// JSON has no infinity, and a number that becomes one would be written as something else.
bool is_finite(const json::value& value) {
  if (value.is_double()) return std::isfinite(value.get_double());
  if (value.is_array()) return std::ranges::all_of(value.get_array(), is_finite);
  if (!value.is_object()) return true;
  return std::ranges::all_of(value.get_object(), [](const auto& member) { return is_finite(member.value()); });
}

}  // namespace

std::size_t json_nodes(std::string_view text) {
  std::size_t nodes = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
      }
    } else if (kBeginsNode[static_cast<unsigned char>(c)]) {
      ++nodes;
    }
  }
  return nodes;
}

bool is_json(std::string_view text) {
  json::basic_parser<JsonChecker> parser(json::parse_options{});
  json::error_code failed;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), failed);
  return !failed && text.find_first_not_of(" \t\r\n", read) == std::string_view::npos;
}

Result<json::value> parse_json(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Error{ErrorCode::invalid_request, "the body is empty; a JSON object is expected", ""};
  }
  // A node has two bytes at least.
  if (body.size() > kJsonNodesMax && json_nodes(body) > kJsonNodesMax) {
    return Error{ErrorCode::invalid_request,
                 "the body has too many values; at most " + std::to_string(kJsonNodesMax) + " are allowed", ""};
  }
  if (body.size() >= kLargeBody) note_large_body();
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
  json::value value = parser.release();
  if (!is_finite(value)) {
    return Error{ErrorCode::invalid_request, "the body has a number that is too large for a double", ""};
  }
  return value;
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
    if (number == std::trunc(number) && std::fabs(number) <= kFieldExactMax) return static_cast<std::int64_t>(number);
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
