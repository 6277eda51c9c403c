#include "api/schema_check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "api/schema_pattern.h"

namespace chasqui {
namespace {

namespace json = boost::json;
using Names = std::initializer_list<std::string_view>;

constexpr std::size_t kDepthMax = 60;
constexpr std::size_t kPropertiesMax = 200;     // of one object
constexpr std::size_t kNameBytesMax = 256;      // of one property
constexpr std::size_t kNodesMax = 2000;         // of one schema
constexpr std::int64_t kRepeatsMax = 2000;      // llama.cpp's grammars do not count further
constexpr double kExactMax = 9007199254740992;  // whole numbers that every client can read

constexpr std::string_view kAnnotations[] = {"title",    "description", "default",    "examples", "deprecated",
                                             "readOnly", "writeOnly",   "$schema",    "$id",      "$comment",
                                             "$anchor",  "$defs",       "definitions"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
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

class SchemaReader {
 public:
  SchemaReader(const json::value& root, std::string path) : root_(root), path_(std::move(path)) {}

  Result<json::object> run() {
    json::object out = node(root_, "", 0);
    if (!error_ && root_.is_object()) {
      for (const std::string_view name : {std::string_view("$defs"), std::string_view("definitions")}) {
        definitions(root_.get_object(), name, out);
      }
    }
    if (error_) return *error_;
    return out;
  }

 private:
  // `keyword` completes the path of the schema; errors name both.
  void refuse(const std::string& where, std::string_view keyword, const std::string& why) {
    if (error_) return;
    std::string field = path_ + where + (keyword.empty() ? "" : ".") + std::string(keyword);
    error_ = invalid_field(field, field + ' ' + why);
  }

  // Refuses what is neither in `known` nor an annotation.
  void only(const json::object& schema, const std::string& where, Names known) {
    for (const auto& [keyword, value] : schema) {
      if (std::find(known.begin(), known.end(), std::string_view(keyword)) != known.end()) continue;
      if (contains(kAnnotations, keyword)) continue;
      refuse(where, keyword, "is not supported here: keyword " + std::string(keyword));
    }
  }

  void definitions(const json::object& schema, std::string_view name, json::object& out) {
    const json::value* all = schema.if_contains(name);
    if (all == nullptr || !all->is_object()) return;
    json::object made;
    for (const auto& [key, value] : all->get_object()) {
      made[key] = node(value, '.' + std::string(name) + '.' + std::string(key), 1);
    }
    out[name] = std::move(made);
  }

  json::object node(const json::value& value, const std::string& where, std::size_t depth) {
    if (error_) return {};
    if (value.is_bool() && value.get_bool()) return {};
    if (!value.is_object()) {
      refuse(where, "", "must be a schema: an object, or true");
      return {};
    }
    if (depth > kDepthMax) refuse(where, "", "is nested too deeply; at most 60 levels are allowed");
    if (++nodes_ > kNodesMax) refuse(where, "", "has too many parts; a schema may have at most 2000");
    if (error_) return {};
    const json::object& schema = value.get_object();
    if (schema.contains("$ref")) return reference(schema, where);
    if (schema.contains("anyOf")) return alternatives(schema, "anyOf", where, depth);
    if (schema.contains("oneOf")) return alternatives(schema, "oneOf", where, depth);
    if (schema.contains("allOf")) return all_of(schema, where, depth);
    if (schema.contains("const") || schema.contains("enum")) return values(schema, where);
    if (const json::value* type = schema.if_contains("type"); type != nullptr && type->is_array()) {
      return types(schema, type->get_array(), where, depth);
    }
    return typed(schema, type_of(schema, where), where, depth);
  }

  // Where there is no type, what else is there tells which is meant.
  std::string_view type_of(const json::object& schema, const std::string& where) {
    if (const json::value* type = schema.if_contains("type")) {
      if (!type->is_string()) refuse(where, "type", "must be a string or an array of strings");
      return type->is_string() ? std::string_view(type->get_string()) : "";
    }
    const auto has = [&schema](Names names) {
      return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return schema.contains(name); });
    };
    if (has({"properties", "required", "additionalProperties"})) return "object";
    if (has({"items", "prefixItems", "minItems", "maxItems"})) return "array";
    if (has({"pattern", "format", "minLength", "maxLength"})) return "string";
    return "any";
  }

  json::object typed(const json::object& schema, std::string_view type, const std::string& where, std::size_t depth) {
    if (type == "object") return object(schema, where, depth);
    if (type == "array") return array(schema, where, depth);
    if (type == "string") return string(schema, where);
    if (type == "integer") return integer(schema, where);
    if (type == "any") {
      only(schema, where, {});
      return {};
    }
    if (type != "number" && type != "boolean" && type != "null") {
      refuse(where, "type", "must be object, array, string, integer, number, boolean or null");
      return {};
    }
    only(schema, where, {"type"});
    return {{"type", type}};
  }

  json::object reference(const json::object& schema, const std::string& where) {
    only(schema, where, {"$ref"});
    const std::string_view target = string_at(schema, "$ref");
    const bool plain = target.starts_with("#/") && target.size() <= kNameBytesMax &&
                       target.find_first_of("~%") == std::string_view::npos;
    if (!plain || (!target.starts_with("#/$defs/") && !target.starts_with("#/definitions/"))) {
      refuse(where, "$ref", "must begin with #/$defs/ or #/definitions/ and hold neither ~ nor %");
      return {};
    }
    const std::string_view rest = target.substr(target.find('/', 2) + 1);
    const json::value* all =
        root_.is_object() ? root_.get_object().if_contains(target.substr(2, target.find('/', 2) - 2)) : nullptr;
    if (all == nullptr || !all->is_object() || !all->get_object().contains(rest)) {
      refuse(where, "$ref", "names a definition that the schema does not have");
    }
    return {{"$ref", target}};
  }

  json::object alternatives(const json::object& schema, std::string_view keyword, const std::string& where,
                            std::size_t depth) {
    only(schema, where, {keyword});
    const json::value& list = schema.at(keyword);
    if (!list.is_array() || list.get_array().empty()) {
      refuse(where, keyword, "must be an array with at least one schema");
      return {};
    }
    json::array made;
    std::size_t index = 0;
    for (const json::value& item : list.get_array()) {
      made.push_back(node(item, where + '.' + std::string(keyword) + '[' + std::to_string(index++) + ']', depth + 1));
    }
    if (keyword == "oneOf" && !error_) check_disjoint(list.get_array(), where);
    return {{"anyOf", std::move(made)}};
  }

  const json::object* resolved(const json::value& schema) const {
    const json::value* at = &schema;
    for (int steps = 0; steps < 16 && at->is_object(); ++steps) {
      const std::string_view ref = string_at(at->get_object(), "$ref");
      if (ref.empty()) return &at->get_object();
      const std::size_t slash = ref.find('/', 2);
      const json::value* all = root_.get_object().if_contains(ref.substr(2, slash - 2));
      if (all == nullptr || !all->is_object()) return nullptr;
      at = all->get_object().if_contains(ref.substr(slash + 1));
      if (at == nullptr) return nullptr;
    }
    return nullptr;
  }

  // The only values that a schema allows, as JSON texts; empty when it is not a list of values.
  static std::set<std::string> listed(const json::object& schema) {
    std::set<std::string> out;
    if (const json::value* one = schema.if_contains("const")) out.insert(json::serialize(*one));
    if (const json::value* list = schema.if_contains("enum"); list != nullptr && list->is_array()) {
      for (const json::value& value : list->get_array()) out.insert(json::serialize(value));
    }
    return out;
  }

  // None of the values that `schema` lists is of the type.
  static bool none_has_type(const json::object& schema, std::string_view type) {
    if (type.empty()) return false;
    json::array values;
    if (const json::value* one = schema.if_contains("const")) values.push_back(*one);
    if (const json::value* list = schema.if_contains("enum"); list != nullptr && list->is_array()) {
      values = list->get_array();
    }
    return std::ranges::none_of(values, [type](const json::value& value) { return matches_type(value, type); });
  }

  bool disjoint(const json::object& a, const json::object& b) const {
    const std::set<std::string> of_a = listed(a);
    const std::set<std::string> of_b = listed(b);
    const auto common = [](const std::set<std::string>& x, const std::set<std::string>& y) {
      return std::any_of(x.begin(), x.end(), [&y](const std::string& text) { return y.contains(text); });
    };
    if (!of_a.empty() && !of_b.empty()) return !common(of_a, of_b);
    if (!of_a.empty()) return none_has_type(a, string_at(b, "type"));
    if (!of_b.empty()) return none_has_type(b, string_at(a, "type"));
    const std::string_view type_a = string_at(a, "type");
    const std::string_view type_b = string_at(b, "type");
    const auto number = [](std::string_view type) { return type == "integer" || type == "number"; };
    if (!type_a.empty() && !type_b.empty() && type_a != type_b) return !(number(type_a) && number(type_b));
    // A property that both must have, and that tells them apart.
    const json::value* properties_a = a.if_contains("properties");
    const json::value* properties_b = b.if_contains("properties");
    if (properties_a == nullptr || properties_b == nullptr || !properties_a->is_object() ||
        !properties_b->is_object()) {
      return false;
    }
    for (const auto& [name, value] : properties_a->get_object()) {
      const json::value* other = properties_b->get_object().if_contains(name);
      if (other == nullptr || !requires_name(a, name) || !requires_name(b, name)) continue;
      const json::object* x = resolved(value);
      const json::object* y = resolved(*other);
      if (x == nullptr || y == nullptr) continue;
      const std::set<std::string> of_x = listed(*x);
      const std::set<std::string> of_y = listed(*y);
      if (!of_x.empty() && !of_y.empty() && !common(of_x, of_y)) return true;
    }
    return false;
  }

  static bool requires_name(const json::object& schema, std::string_view name) {
    const json::value* required = schema.if_contains("required");
    if (required == nullptr || !required->is_array()) return false;
    return std::ranges::any_of(required->get_array(), [name](const json::value& item) {
      return item.is_string() && std::string_view(item.get_string()) == name;
    });
  }

  void check_disjoint(const json::array& list, const std::string& where) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (std::size_t j = i + 1; j < list.size(); ++j) {
        const json::object* a = resolved(list[i]);
        const json::object* b = resolved(list[j]);
        if (a != nullptr && b != nullptr && disjoint(*a, *b)) continue;
        return refuse(where, "oneOf",
                      "is supported only where alternatives cannot fit both: other types, or a required property with "
                      "other values; anyOf has no such limit: keyword oneOf");
      }
    }
  }

  json::object all_of(const json::object& schema, const std::string& where, std::size_t depth) {
    const json::value& list = schema.at("allOf");
    if (!list.is_array() || list.get_array().empty()) {
      refuse(where, "allOf", "must be an array with at least one schema");
      return {};
    }
    const json::array& parts = list.get_array();
    if (parts.size() == 1) {
      only(schema, where, {"allOf"});
      return node(parts[0], where + ".allOf[0]", depth + 1);
    }
    only(schema, where, {"allOf", "type", "properties", "required"});
    json::object joined;
    json::object properties;
    json::array required;
    const auto take = [&](const json::object& part) {
      for (const auto& [name, value] : part) {
        const bool known = contains(kAnnotations, name) || name == "type" || name == "properties" ||
                           name == "required" || name == "allOf";
        if (!known || (name == "type" && string_at(part, "type") != "object")) {
          refuse(where, "allOf", "may join objects with properties and required only: keyword " + std::string(name));
        }
      }
      if (const json::value* some = part.if_contains("properties"); some != nullptr && some->is_object()) {
        for (const auto& [name, value] : some->get_object()) {
          if (properties.contains(name)) refuse(where, "allOf", "may join objects of different properties only");
          properties[name] = value;
        }
      }
      if (const json::value* some = part.if_contains("required"); some != nullptr && some->is_array()) {
        for (const json::value& name : some->get_array()) required.push_back(name);
      }
    };
    take(schema);
    for (const json::value& part : parts) {
      const json::object* target = resolved(part);
      if (target == nullptr || target->contains("allOf")) {
        refuse(where, "allOf", "may join objects with properties and required only");
        return {};
      }
      take(*target);
    }
    if (error_) return {};
    joined["type"] = "object";
    joined["properties"] = std::move(properties);
    joined["required"] = std::move(required);
    return object(joined, where, depth);
  }

  json::object values(const json::object& schema, const std::string& where) {
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
      json::array kinds = type->is_array() ? type->get_array() : json::array{*type};
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

  json::object types(const json::object& schema, const json::array& list, const std::string& where, std::size_t depth) {
    // What belongs to one of the types must not be refused for the sake of the others.
    static constexpr std::pair<std::string_view, std::string_view> kOwner[] = {
        {"properties", "object"}, {"required", "object"},          {"additionalProperties", "object"},
        {"items", "array"},       {"prefixItems", "array"},        {"minItems", "array"},
        {"maxItems", "array"},    {"pattern", "string"},           {"format", "string"},
        {"minLength", "string"},  {"maxLength", "string"},         {"minimum", "integer"},
        {"maximum", "integer"},   {"exclusiveMinimum", "integer"}, {"exclusiveMaximum", "integer"}};
    json::array made;
    for (const json::value& type : list) {
      if (!type.is_string()) {
        refuse(where, "type", "must be a string or an array of strings");
        return {};
      }
      const std::string_view wanted = type.get_string();
      json::object one;
      for (const auto& [keyword, value] : schema) {
        const auto owner =
            std::ranges::find(kOwner, std::string_view(keyword), &std::pair<std::string_view, std::string_view>::first);
        const bool listed_type = owner != std::end(kOwner) && std::ranges::any_of(list, [&](const json::value& other) {
                                   return other.is_string() && std::string_view(other.get_string()) == owner->second;
                                 });
        if (listed_type && owner->second != wanted && !(owner->second == "integer" && wanted == "number")) continue;
        one[keyword] = value;
      }
      one["type"] = wanted;
      made.push_back(typed(one, wanted, where, depth + 1));
    }
    if (made.empty()) refuse(where, "type", "must not be empty");
    return {{"anyOf", std::move(made)}};
  }

  json::object object(const json::object& schema, const std::string& where, std::size_t depth) {
    only(schema, where, {"type", "properties", "required", "additionalProperties"});
    json::object out{{"type", "object"}};
    const json::value* properties = schema.if_contains("properties");
    const json::value* others = schema.if_contains("additionalProperties");
    const json::value* required = schema.if_contains("required");
    json::object made;
    if (properties != nullptr) {
      if (!properties->is_object() || properties->get_object().size() > kPropertiesMax) {
        refuse(where, "properties", "must be an object with at most 200 members");
        return {};
      }
      for (const auto& [name, value] : properties->get_object()) {
        if (name.size() > kNameBytesMax) refuse(where, "properties", "must have names of at most 256 bytes");
        made[name] = node(value, where + ".properties." + std::string(name), depth + 1);
      }
    }
    if (required != nullptr) check_required(*required, made, where);
    if (others != nullptr && !others->is_bool() && !others->is_object()) {
      refuse(where, "additionalProperties", "must be true, false or a schema");
    }
    if (error_) return {};
    if (!made.empty()) {
      out["properties"] = std::move(made);
      if (required != nullptr) out["required"] = *required;
      out["additionalProperties"] = false;
    } else if (others != nullptr && others->is_object()) {
      out["additionalProperties"] = node(*others, where + ".additionalProperties", depth + 1);
    } else if ((others != nullptr && !others->get_bool()) || (others == nullptr && properties != nullptr)) {
      out["additionalProperties"] = false;
    }
    return out;
  }

  void check_required(const json::value& required, const json::object& properties, const std::string& where) {
    if (!required.is_array()) return refuse(where, "required", "must be an array of names");
    for (const json::value& name : required.get_array()) {
      if (!name.is_string()) return refuse(where, "required", "must be an array of names");
      if (!properties.contains(name.get_string())) {
        refuse(where, "required", "names " + std::string(name.get_string()) + ", which is not among the properties");
      }
    }
  }

  // A count of 0 … 2000; more is an error for a lower bound, and the most that we count for an upper one.
  std::int64_t count(const json::object& schema, std::string_view keyword, std::int64_t unsaid, bool upper,
                     const std::string& where) {
    const json::value* value = schema.if_contains(keyword);
    if (value == nullptr) return unsaid;
    if (!matches_type(*value, "integer") || value->to_number<double>() < 0) {
      refuse(where, keyword, "must be a whole number from 0 on");
      return unsaid;
    }
    const double number = value->to_number<double>();
    if (number > kRepeatsMax && !upper) refuse(where, keyword, "may be at most 2000");
    return static_cast<std::int64_t>(std::min<double>(number, kRepeatsMax));
  }

  void bounds(const json::object& schema, std::string_view low, std::string_view high, const std::string& where,
              json::object& out) {
    const std::int64_t least = count(schema, low, 0, false, where);
    const std::int64_t most = count(schema, high, -1, true, where);
    if (most >= 0 && least > most) refuse(where, low, "must not be larger than " + std::string(high));
    if (least > 0) out[low] = least;
    if (most >= 0) out[high] = most;
  }

  json::object array(const json::object& schema, const std::string& where, std::size_t depth) {
    only(schema, where, {"type", "items", "prefixItems", "minItems", "maxItems"});
    const json::value* items = schema.if_contains("items");
    const json::value* first = schema.if_contains("prefixItems");
    if (first == nullptr && items != nullptr && items->is_array()) std::swap(first, items);  // as before draft 2020-12
    if (first != nullptr) return tuple(schema, *first, where, depth);
    json::object out{{"type", "array"}};
    bounds(schema, "minItems", "maxItems", where, out);
    if (items == nullptr || (items->is_bool() && items->get_bool())) {
      if (out.size() > 1) out["items"] = json::object();
    } else if (items->is_bool()) {
      if (out.contains("minItems")) refuse(where, "minItems", "must be 0 where no items are allowed");
      return {{"enum", json::array{json::array()}}};
    } else {
      out["items"] = node(*items, where + ".items", depth + 1);
    }
    if (const json::value* most = out.if_contains("maxItems"); most != nullptr && most->get_int64() == 0) {
      return {{"enum", json::array{json::array()}}};
    }
    return out;
  }

  json::object tuple(const json::object& schema, const json::value& first, const std::string& where,
                     std::size_t depth) {
    if (!first.is_array() || first.get_array().empty()) {
      refuse(where, "prefixItems", "must be an array with at least one schema");
      return {};
    }
    json::array made;
    for (const json::value& item : first.get_array()) {
      made.push_back(node(item, where + ".prefixItems[" + std::to_string(made.size()) + ']', depth + 1));
    }
    json::object range;
    bounds(schema, "minItems", "maxItems", where, range);
    const auto size = static_cast<std::int64_t>(made.size());
    if (range.contains("minItems") && range["minItems"].get_int64() > size) {
      refuse(where, "minItems", "must not be larger than the number of prefixItems");
    }
    if (range.contains("maxItems") && range["maxItems"].get_int64() < size) {
      refuse(where, "maxItems", "must not be smaller than the number of prefixItems");
    }
    return {{"type", "array"}, {"prefixItems", std::move(made)}};
  }

  json::object string(const json::object& schema, const std::string& where) {
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

  json::object integer(const json::object& schema, const std::string& where) {
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

  const json::value& root_;
  const std::string path_;
  std::size_t nodes_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<json::object> check_schema(const json::value& schema, const std::string& path) {
  return SchemaReader(schema, path).run();
}

}  // namespace chasqui
