#include "api/schema/schema_overlap.h"

#include <algorithm>
#include <set>
#include <string>

#include "api/schema/schema_leaves.h"
#include "base/limits.h"

namespace chasqui {

namespace json = boost::json;

namespace {

// 1 and 1.0 are one number.
std::string text_of_value(const json::value& value) {
  if (!value.is_number()) return json::serialize(value);
  return json::serialize(json::value(value.to_number<double>()));
}

// The only values that a schema allows, as JSON texts; empty when it is not a list of values.
std::set<std::string> listed(const json::object& schema) {
  std::set<std::string> out;
  if (const json::value* one = schema.if_contains("const")) out.insert(text_of_value(*one));
  if (const json::value* list = schema.if_contains("enum"); list != nullptr && list->is_array()) {
    for (const json::value& value : list->get_array()) out.insert(text_of_value(value));
  }
  return out;
}

// None of the values that `schema` lists is of the type.
bool none_has_type(const json::object& schema, std::string_view type) {
  if (type.empty()) return false;
  json::array values;
  if (const json::value* one = schema.if_contains("const")) values.push_back(*one);
  if (const json::value* list = schema.if_contains("enum"); list != nullptr && list->is_array()) {
    values = list->get_array();
  }
  return std::ranges::none_of(values, [type](const json::value& value) { return matches_type(value, type); });
}

// The types that a schema names; empty: none.
std::set<std::string> types_of(const json::object& schema) {
  const json::value* type = schema.if_contains("type");
  std::set<std::string> out;
  if (type == nullptr) return out;
  const json::array list = type->is_array() ? type->get_array() : json::array(1, *type);
  for (const json::value& each : list) {
    if (each.is_string()) out.insert(std::string(each.get_string()));
  }
  if (out.contains("number")) out.insert("integer");
  return out;
}

bool requires_name(const json::object& schema, std::string_view name) {
  const json::value* required = schema.if_contains("required");
  if (required == nullptr || !required->is_array()) return false;
  if (required->get_array().size() > kSizeLimit<"schema_properties">) return false;
  return std::ranges::any_of(required->get_array(), [name](const json::value& item) {
    return item.is_string() && std::string_view(item.get_string()) == name;
  });
}

}  // namespace

const json::object* resolved(const json::value& root, const json::value& schema) {
  const json::value* at = &schema;
  for (int steps = 0; steps < 16 && at->is_object(); ++steps) {
    const std::string_view ref = string_at(at->get_object(), "$ref");
    if (ref.empty()) return &at->get_object();
    const std::size_t slash = ref.find('/', 2);
    if (!ref.starts_with("#/") || slash == std::string_view::npos || !root.is_object()) return nullptr;
    const json::value* all = root.get_object().if_contains(ref.substr(2, slash - 2));
    if (all == nullptr || !all->is_object()) return nullptr;
    at = all->get_object().if_contains(ref.substr(slash + 1));
    if (at == nullptr) return nullptr;
  }
  return nullptr;
}

bool cannot_both_fit(const json::value& root, const json::object& a, const json::object& b) {
  const std::set<std::string> of_a = listed(a);
  const std::set<std::string> of_b = listed(b);
  const auto common = [](const std::set<std::string>& x, const std::set<std::string>& y) {
    return std::any_of(x.begin(), x.end(), [&y](const std::string& text) { return y.contains(text); });
  };
  if (!of_a.empty() && !of_b.empty()) return !common(of_a, of_b);
  if (!of_a.empty()) return none_has_type(a, string_at(b, "type"));
  if (!of_b.empty()) return none_has_type(b, string_at(a, "type"));
  std::set<std::string> types = types_of(a);
  const std::set<std::string> types_b = types_of(b);
  if (!types.empty() && !types_b.empty()) {
    std::erase_if(types, [&](const std::string& type) { return !types_b.contains(type); });
    if (types.empty()) return true;
  } else if (types.empty()) {
    types = types_b;
  }
  if (std::ranges::any_of(types, [](const std::string& type) { return type != "object"; })) return false;
  // A property that both must have, and that tells them apart.
  const json::value* properties_a = a.if_contains("properties");
  const json::value* properties_b = b.if_contains("properties");
  if (properties_a == nullptr || properties_b == nullptr || !properties_a->is_object() || !properties_b->is_object()) {
    return false;
  }
  for (const auto& [name, value] : properties_a->get_object()) {
    const json::value* other = properties_b->get_object().if_contains(name);
    if (other == nullptr || !requires_name(a, name) || !requires_name(b, name)) continue;
    const json::object* x = resolved(root, value);
    const json::object* y = resolved(root, *other);
    if (x == nullptr || y == nullptr) continue;
    const std::set<std::string> of_x = listed(*x);
    const std::set<std::string> of_y = listed(*y);
    if (!of_x.empty() && !of_y.empty() && !common(of_x, of_y)) return true;
  }
  return false;
}

}  // namespace chasqui
