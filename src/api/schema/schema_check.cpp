#include "api/schema/schema_check.h"

#include <algorithm>
#include <functional>
#include <map>

#include "api/schema/schema_leaves.h"
#include "api/schema/schema_overlap.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kSchemaDepthMax = kSizeLimit<"schema_depth">;
constexpr std::size_t kPropertiesMax = kSizeLimit<"schema_properties">;  // of one object
constexpr std::size_t kNameBytesMax = kSizeLimit<"schema_name_bytes">;   // of one property
constexpr std::size_t kAlternativesMax = kSizeLimit<"schema_alternatives">;
constexpr std::size_t kNodesMax = kSizeLimit<"schema_parts">;  // of one schema
constexpr std::size_t kSchemaPathBytesMax = kSizeLimit<"schema_path_bytes">;

class SchemaReader : private SchemaLeaves {
 public:
  SchemaReader(const json::value& root, std::string path) : SchemaLeaves(std::move(path)), root_(root) {}

  Result<json::object> run() {
    json::object out = node(root_, "", 0);
    if (!error_ && root_.is_object()) {
      for (const std::string_view name : {std::string_view("$defs"), std::string_view("definitions")}) {
        definitions(root_.get_object(), name, out);
      }
    }
    check_cycles();
    if (error_) return *error_;
    return out;
  }

 private:
  // A definition that refers to itself before anything is written would never begin.
  void check_cycles() {
    std::map<std::string_view, std::size_t> leaving;  // how many references leave it that may be part of a cycle
    std::multimap<std::string_view, std::size_t> reaching;
    for (std::size_t i = 0; i < direct_.size(); ++i) {
      ++leaving[direct_[i].from];
      leaving[direct_[i].to];
      reaching.emplace(direct_[i].to, i);
    }
    std::vector<std::string_view> ends;
    for (const auto& [name, count] : leaving) {
      if (count == 0) ends.push_back(name);
    }
    std::vector<bool> ended(direct_.size());
    while (!ends.empty()) {
      const auto [first, last] = reaching.equal_range(ends.back());
      ends.pop_back();
      for (auto one = first; one != last; ++one) {
        ended[one->second] = true;
        const std::string_view from = direct_[one->second].from;
        if (--leaving[from] == 0) ends.push_back(from);
      }
    }
    const auto cycle = std::ranges::find(ended, false);
    if (cycle == ended.end()) return;
    const auto index = static_cast<std::size_t>(cycle - ended.begin());
    refuse(direct_[index].where, "$ref", "leads back to itself with no object or array between");
  }

  // The converter makes names of rules of these, and takes a-b, a_b and "a b" for the same.
  std::string plain_name(const std::string& target) {
    return 'd' + std::to_string(names_.emplace(target, names_.size()).first->second);
  }

  void definitions(const json::object& schema, std::string_view name, json::object& out) {
    const json::value* all = schema.if_contains(name);
    if (all == nullptr || !all->is_object()) return;
    json::object made;
    if (const json::value* before = out.if_contains("$defs")) made = before->get_object();
    for (const auto& [key, value] : all->get_object()) {
      const std::string target = "#/" + std::string(name) + '/' + std::string(key);
      within_ = target;
      made[plain_name(target)] = node(value, '.' + std::string(name) + '.' + std::string(key), 1);
    }
    if (!made.empty()) out["$defs"] = std::move(made);
  }

  json::object inner(const json::value& value, const std::string& where, std::size_t depth) {
    ++inside_;
    json::object out = node(value, where, depth);
    --inside_;
    return out;
  }

  json::object node(const json::value& value, const std::string& where, std::size_t depth) {
    if (error_) return {};
    if (value.is_bool() && value.get_bool()) return {};
    if (!value.is_object()) {
      refuse(where, "", "must be a schema: an object, or true");
      return {};
    }
    if (depth > kSchemaDepthMax) refuse(where, "", "is nested too deeply; at most 60 levels are allowed");
    if (++nodes_ > kNodesMax) refuse(where, "", "has too many parts; a schema may have at most 2000");
    // The converter makes each part's path the name of a rule.
    if ((path_bytes_ += where.size()) > kSchemaPathBytesMax) {
      refuse("", "",
             "has names that are too long or nested too deeply: the paths to all of its parts may have at most " +
                 std::to_string(kSchemaPathBytesMax) + " bytes together");
    }
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
    const auto has = [&schema](std::initializer_list<std::string_view> names) {
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
    if (inside_ == 0) direct_.push_back({within_, std::string(target), where});
    return {{"$ref", "#/$defs/" + plain_name(std::string(target))}};
  }

  json::object alternatives(const json::object& schema, std::string_view keyword, const std::string& where,
                            std::size_t depth) {
    only(schema, where, {keyword});
    const json::value& list = schema.at(keyword);
    if (!list.is_array() || list.get_array().empty()) {
      refuse(where, keyword, "must be an array with at least one schema");
      return {};
    }
    if (keyword == "oneOf" && list.get_array().size() > kAlternativesMax) {  // each is compared with each
      refuse(where, keyword, "may have at most 100 alternatives; anyOf has no such limit: keyword oneOf");
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

  void check_disjoint(const json::array& list, const std::string& where) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (std::size_t j = i + 1; j < list.size(); ++j) {
        const json::object* a = resolved(root_, list[i]);
        const json::object* b = resolved(root_, list[j]);
        if (a != nullptr && b != nullptr && cannot_both_fit(root_, *a, *b)) continue;
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
        const bool known =
            is_annotation(name) || name == "type" || name == "properties" || name == "required" || name == "allOf";
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
      const json::object* target = resolved(root_, part);
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

  json::object types(const json::object& schema, const json::array& list, const std::string& where, std::size_t depth) {
    // What belongs to one of the types must not be refused for the sake of the others.
    static constexpr std::pair<std::string_view, std::string_view> kOwner[] = {
        {"properties", "object"}, {"required", "object"},          {"additionalProperties", "object"},
        {"items", "array"},       {"prefixItems", "array"},        {"minItems", "array"},
        {"maxItems", "array"},    {"pattern", "string"},           {"format", "string"},
        {"minLength", "string"},  {"maxLength", "string"},         {"minimum", "integer"},
        {"maximum", "integer"},   {"exclusiveMinimum", "integer"}, {"exclusiveMaximum", "integer"}};
    json::array made;
    if (list.size() > kTypesMax) {
      refuse(where, "type", "may list each type once");
      return {};
    }
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
        made[name] = inner(value, where + ".properties." + std::string(name), depth + 1);
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
      out["additionalProperties"] = inner(*others, where + ".additionalProperties", depth + 1);
    } else if ((others != nullptr && !others->get_bool()) || (others == nullptr && properties != nullptr)) {
      out["additionalProperties"] = false;
    }
    return out;
  }

  // Not array{array()}: compilers differ on whether that is a copy or holds one empty array (CWG 2137).
  static json::object no_items() { return {{"enum", json::array(1, json::array())}}; }

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
      return no_items();
    } else {
      out["items"] = inner(*items, where + ".items", depth + 1);
    }
    if (const json::value* most = out.if_contains("maxItems"); most != nullptr && most->get_int64() == 0) {
      return no_items();
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
      made.push_back(inner(item, where + ".prefixItems[" + std::to_string(made.size()) + ']', depth + 1));
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

  const json::value& root_;
  std::size_t nodes_ = 0;
  std::size_t path_bytes_ = 0;
  std::map<std::string, std::size_t, std::less<>> names_;  // of definitions, by what refers to them
  std::string within_;                                     // the definition that is being read
  std::size_t inside_ = 0;                                 // objects and arrays around, in it
  struct Reference {
    std::string from;
    std::string to;
    std::string where;
  };
  std::vector<Reference> direct_;  // those with inside_ 0
};

}  // namespace

Result<json::object> check_schema(const json::value& schema, const std::string& path) {
  return SchemaReader(schema, path).run();
}

}  // namespace chasqui
