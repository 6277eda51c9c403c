#include "api/schema/schema_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "api/schema/json_decimal.h"
#include "api/schema/schema_leaves.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kValueDepthMax = kSizeLimit<"schema_depth">;

void put_json(std::string& out, const json::value& value) {
  if (const auto* object = value.if_object()) {
    out += '{';
    for (const auto& [key, member] : *object) {
      if (out.back() != '{') out += ',';
      out += json_text_of(key) + ':';
      put_json(out, member);
    }
    out += '}';
  } else if (const auto* array = value.if_array()) {
    out += '[';
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (i > 0) out += ',';
      put_json(out, (*array)[i]);
    }
    out += ']';
  } else if (const auto* text = value.if_string()) {
    out += json_text_of(*text);
  } else if (const auto* number = value.if_double()) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, *number);
    out.append(digits, end.ptr);
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string json_of(const json::value& value) {
  std::string out;
  put_json(out, value);
  return out;
}

unsigned type_of_value(const json::value& value) {
  if (value.is_null()) return SchemaFacets::kNull;
  if (value.is_bool()) return SchemaFacets::kBoolean;
  if (value.is_string()) return SchemaFacets::kString;
  if (value.is_array()) return SchemaFacets::kArray;
  if (value.is_object()) return SchemaFacets::kObject;
  return matches_type(value, "integer") ? SchemaFacets::kInteger : SchemaFacets::kFraction;
}

bool fits_number(const json::value& value, const NumberLanguage& language) {
  if (language.is_any()) return true;
  const auto digits = decimal_of(value);
  if (!digits) return false;
  const auto& [low, high, steps, whole] = language;
  if (low && (*digits < low->value || (low->open && *digits == low->value))) return false;
  if (high && (high->value < *digits || (high->open && *digits == high->value))) return false;
  return std::ranges::all_of(steps, [&](const Decimal& step) {
    const double size = std::strtod((step.whole + '.' + step.fraction + '0').c_str(), nullptr);
    const double times = value.to_number<double>() / size;
    return std::abs(times - std::round(times)) < 1e-9 * std::max(1.0, std::abs(times));
  });
}

bool SchemaValues::fits(const json::value& value, SchemaPieces pieces, std::size_t depth) {
  if (depth > kValueDepthMax || source_.failed()) return false;
  if (!merger_.expand(pieces)) return false;
  const SchemaFacets facets = merger_.facets(pieces);
  const auto is_value = [&](const json::value* one) { return *one == value; };
  if (facets.values && std::ranges::none_of(*facets.values, is_value)) return false;
  return fits_facets(value, pieces, facets, depth);
}

std::vector<const json::value*> SchemaValues::fitting(const SchemaPieces& pieces, const SchemaFacets& facets) {
  std::vector<const json::value*> out;
  for (const json::value* value : *facets.values) {
    if (fits_facets(*value, pieces, facets, 0)) out.push_back(value);
  }
  return out;
}

bool SchemaValues::fits_facets(const json::value& value, const SchemaPieces& pieces, const SchemaFacets& facets,
                               std::size_t depth) {
  if ((facets.types & type_of_value(value)) == 0) return false;
  if (value.is_number() && !fits_number(value, facets.number)) return false;
  if (value.is_string() && !facets.text.has(value.get_string())) return false;
  const auto within = [](std::size_t size, std::uint32_t least, std::uint32_t most) {
    return size >= least && (most == GbnfPart::kNoLimit || size <= most);
  };
  if (value.is_array() && !within(value.get_array().size(), facets.items_least, facets.items_most)) return false;
  if (value.is_object() && !within(value.get_object().size(), facets.members_least, facets.members_most)) return false;
  return std::ranges::all_of(pieces, [&](const SchemaPiece& piece) {
    if (!fits_alternatives(value, piece, depth)) return false;
    if (value.is_object()) return fits_members(value.get_object(), piece.schema, depth);
    return !value.is_array() || fits_items(value.get_array(), piece.schema, depth);
  });
}

bool SchemaValues::fits_alternatives(const json::value& value, const SchemaPiece& piece, std::size_t depth) {
  for (const auto& [name, done] : {std::pair("anyOf", SchemaPiece::kAnyOf), std::pair("oneOf", SchemaPiece::kOneOf)}) {
    const json::array* list = array_keyword(piece.schema, name);
    if (list == nullptr || (piece.done & done) != 0) continue;
    std::size_t fitting = 0;
    for (std::size_t i = 0; i < list->size(); ++i) {
      fitting += fits(value, {{source_.child(piece.schema, name, i, (*list)[i])}}, depth + 1) ? 1 : 0;
    }
    if (fitting == 0 || (done == SchemaPiece::kOneOf && fitting > 1)) return false;
  }
  return true;
}

bool SchemaValues::fits_members(const json::object& object, const json::value* schema, std::size_t depth) {
  if (const json::array* required = array_keyword(schema, "required")) {
    for (const json::value& name : *required) {
      if (name.is_string() && !object.contains(name.get_string())) return false;
    }
  }
  const json::object* properties = object_keyword(schema, "properties");
  const json::object* patterns = object_keyword(schema, "patternProperties");
  const json::value* others = keyword_of(schema, "additionalProperties");
  const json::value* names = keyword_of(schema, "propertyNames");
  for (const json::key_value_pair& pair : object) {
    const std::string_view key = pair.key();
    const json::value& member = pair.value();
    bool declared = false;
    const auto fits_one = [&](const json::value* child) {
      declared = true;
      return fits(member, {{child}}, depth + 1);
    };
    if (properties != nullptr && properties->contains(key) &&
        !fits_one(source_.child(schema, "properties", key, properties->at(key)))) {
      return false;
    }
    for (auto each = patterns != nullptr ? patterns->begin() : nullptr; patterns != nullptr && each != patterns->end();
         ++each) {
      const auto pattern = merger_.pattern(schema, "patternProperties", each->key());
      if (pattern == nullptr || !pattern->matches(key)) continue;
      if (!fits_one(source_.child(schema, "patternProperties", each->key(), each->value()))) return false;
    }
    if (!declared && others != nullptr && !fits_one(source_.child(schema, "additionalProperties", *others))) {
      return false;
    }
    if (names != nullptr && !fits(json::value(key), {{source_.child(schema, "propertyNames", *names)}}, depth + 1)) {
      return false;
    }
  }
  return true;
}

bool SchemaValues::fits_items(const json::array& array, const json::value* schema, std::size_t depth) {
  const json::array* first = array_keyword(schema, "prefixItems");
  const bool old = first == nullptr && array_keyword(schema, "items") != nullptr;
  const std::string_view first_name = old ? "items" : "prefixItems";
  const std::string_view rest_name = old ? "additionalItems" : "items";
  if (old) first = array_keyword(schema, "items");
  const json::value* rest = keyword_of(schema, rest_name);
  for (std::size_t i = 0; i < array.size(); ++i) {
    const bool at_first = first != nullptr && i < first->size();
    if (!at_first && rest == nullptr) continue;
    const json::value* child =
        at_first ? source_.child(schema, first_name, i, (*first)[i]) : source_.child(schema, rest_name, *rest);
    if (!fits(array[i], {{child}}, depth + 1)) return false;
  }
  return true;
}

}  // namespace chasqui
