#include "api/schema/schema_leaves.h"

#include <algorithm>
#include <cmath>

#include "api/schema/schema_pattern.h"
#include "base/limits.h"

namespace chasqui {

namespace json = boost::json;

namespace {

constexpr std::int64_t kLeafRepeatsMax = kCountLimit<"schema_repeats">;  // llama.cpp's grammars do not count further
constexpr double kExactMax = 9007199254740992;                           // whole numbers that every client can read

constexpr std::string_view kAnnotations[] = {"title",    "description", "default",    "examples", "deprecated",
                                             "readOnly", "writeOnly",   "$schema",    "$id",      "$comment",
                                             "$anchor",  "$defs",       "definitions"};

}  // namespace

bool is_annotation(std::string_view keyword) {
  return std::ranges::find(kAnnotations, keyword) != std::end(kAnnotations);
}

bool matches_type(const json::value& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_bool();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number") return value.is_number();
  if (type != "integer") return false;
  return value.is_int64() || value.is_uint64() ||
         (value.is_double() && std::trunc(value.get_double()) == value.get_double());
}

std::string_view string_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

void SchemaLeaves::refuse(const std::string& where, std::string_view keyword, const std::string& why) {
  if (error_) return;
  std::string field = path_ + where + (keyword.empty() ? "" : ".") + std::string(keyword);
  error_ = invalid_field(field, field + ' ' + why);
}

void SchemaLeaves::only(const json::object& schema, const std::string& where,
                        std::initializer_list<std::string_view> known) {
  for (const auto& [keyword, value] : schema) {
    if (std::find(known.begin(), known.end(), std::string_view(keyword)) != known.end()) continue;
    if (is_annotation(keyword)) continue;
    refuse(where, keyword, "is not supported here: keyword " + std::string(keyword));
  }
}

json::object SchemaLeaves::values(const json::object& schema, const std::string& where) {
  const bool one = schema.contains("const");
  const std::string_view keyword = one ? "const" : "enum";
  only(schema, where, {keyword, "type"});
  json::array list;
  if (one) {
    list.push_back(schema.at("const"));
  } else if (schema.at("enum").is_array()) {
    list = schema.at("enum").get_array();
  }
  if (const json::value* type = schema.if_contains("type")) {
    json::array kinds = type->is_array() ? type->get_array() : json::array(1, *type);
    if (kinds.size() > kTypesMax) refuse(where, "type", "may list each type once");
    if (error_) return {};
    json::array fitting;
    for (const json::value& value : list) {
      const bool fits = std::ranges::any_of(kinds, [&value](const json::value& kind) {
        return kind.is_string() && matches_type(value, std::string_view(kind.get_string()));
      });
      if (fits) fitting.push_back(value);
    }
    list = std::move(fitting);
  }
  if (list.empty()) refuse(where, keyword, "must hold at least one value of the type");
  return {{"enum", std::move(list)}};
}

void SchemaLeaves::check_required(const json::value& required, const json::object& properties,
                                  const std::string& where) {
  if (!required.is_array()) return refuse(where, "required", "must be an array of names");
  if (required.get_array().size() > kSizeLimit<"schema_properties">) {
    return refuse(where, "required", "may have at most 200 names");
  }
  for (const json::value& name : required.get_array()) {
    if (!name.is_string()) return refuse(where, "required", "must be an array of names");
    if (!properties.contains(name.get_string())) {
      refuse(where, "required", "names " + std::string(name.get_string()) + ", which is not among the properties");
    }
  }
}

// A count of 0 … 2000; more is an error for a lower bound, and the most that we count for an upper one.
std::int64_t SchemaLeaves::count(const json::object& schema, std::string_view keyword, std::int64_t unsaid, bool upper,
                                 const std::string& where) {
  const json::value* value = schema.if_contains(keyword);
  if (value == nullptr) return unsaid;
  if (!matches_type(*value, "integer") || value->to_number<double>() < 0) {
    refuse(where, keyword, "must be a whole number from 0 on");
    return unsaid;
  }
  const double number = value->to_number<double>();
  if (number > kLeafRepeatsMax && !upper) refuse(where, keyword, "may be at most 2000");
  return static_cast<std::int64_t>(std::min<double>(number, kLeafRepeatsMax));
}

void SchemaLeaves::bounds(const json::object& schema, std::string_view low, std::string_view high,
                          const std::string& where, json::object& out) {
  const std::int64_t least = count(schema, low, 0, false, where);
  const std::int64_t most = count(schema, high, -1, true, where);
  if (most >= 0 && least > most) refuse(where, low, "must not be larger than " + std::string(high));
  if (least > 0) out[low] = least;
  if (most >= 0) out[high] = most;
}

json::object SchemaLeaves::string(const json::object& schema, const std::string& where) {
  only(schema, where, {"type", "pattern", "format", "minLength", "maxLength"});
  const json::value* pattern = schema.if_contains("pattern");
  const json::value* format = schema.if_contains("format");
  const bool length = schema.contains("minLength") || schema.contains("maxLength");
  if (pattern != nullptr && format != nullptr) refuse(where, "format", "is not supported beside pattern");
  if ((pattern != nullptr || format != nullptr) && length) {
    const std::string_view keyword = schema.contains("minLength") ? "minLength" : "maxLength";
    refuse(where, keyword, "is not supported beside pattern or format: keyword " + std::string(keyword));
  }
  json::object out{{"type", "string"}};
  if (pattern != nullptr) {
    if (!pattern->is_string()) refuse(where, "pattern", "must be a string");
    if (error_) return {};
    auto safe = safe_pattern(std::string_view(pattern->get_string()));
    if (!safe) {
      refuse(where, "pattern", safe.error().message + ": keyword pattern");
      return {};
    }
    out["pattern"] = *safe;
  } else if (format != nullptr) {
    const std::string_view name = format->is_string() ? std::string_view(format->get_string()) : "";
    if (name == "uuid" || name == "time") {
      out["format"] = name;
    } else if (const std::string_view known = pattern_of_format(name); !known.empty()) {
      out["pattern"] = known;
    } else {
      refuse(where, "format", "must be date, time, date-time, uuid, email or ipv4: keyword format");
    }
  } else {
    bounds(schema, "minLength", "maxLength", where, out);
  }
  return out;
}

json::object SchemaLeaves::integer(const json::object& schema, const std::string& where) {
  only(schema, where, {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"});
  const auto bound = [&](std::string_view keyword, bool up, std::int64_t step) -> std::optional<std::int64_t> {
    const json::value* value = schema.if_contains(keyword);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || std::fabs(value->to_number<double>()) > kExactMax) {
      refuse(where, keyword, "must be a number of at most 2^53");
      return std::nullopt;
    }
    const double number = value->to_number<double>();
    const double rounded = up ? std::ceil(number) : std::floor(number);
    return static_cast<std::int64_t>(rounded) + (rounded == number ? step : 0);
  };
  std::optional<std::int64_t> least = bound("minimum", true, 0);
  std::optional<std::int64_t> most = bound("maximum", false, 0);
  if (const auto other = bound("exclusiveMinimum", true, 1)) least = std::max(least.value_or(*other), *other);
  if (const auto other = bound("exclusiveMaximum", false, -1)) most = std::min(most.value_or(*other), *other);
  if (least && most && *least > *most) refuse(where, "minimum", "must leave at least one whole number");
  json::object out{{"type", "integer"}};
  if (least) out["minimum"] = *least;
  if (most) out["maximum"] = *most;
  return out;
}

}  // namespace chasqui
