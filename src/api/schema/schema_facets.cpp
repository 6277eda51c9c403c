#include "api/schema/schema_facets.h"

#include <algorithm>
#include <cmath>

#include "api/schema/json_decimal.h"
#include "api/schema/schema_formats.h"
#include "api/schema/schema_leaves.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kCountMax = kCountLimit<"schema_repeats">;
constexpr std::uint64_t kMergeWorkMax = kCountLimit<"schema_merges">;

constexpr std::string_view kTypeWords[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
constexpr unsigned kTypeBits[] = {SchemaFacets::kNull,    SchemaFacets::kBoolean,
                                  SchemaFacets::kInteger, SchemaFacets::kInteger | SchemaFacets::kFraction,
                                  SchemaFacets::kString,  SchemaFacets::kArray,
                                  SchemaFacets::kObject};

// Keywords that a type is told by where there is none.
struct Family {
  unsigned types;
  std::initializer_list<std::string_view> keywords;
};
const Family kFamilies[] = {{SchemaFacets::kObject,
                             {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
                              "minProperties", "maxProperties", "unevaluatedProperties"}},
                            {SchemaFacets::kArray,
                             {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems",
                              "contains", "unevaluatedItems"}},
                            {SchemaFacets::kString, {"pattern", "format", "minLength", "maxLength"}},
                            {SchemaFacets::kInteger | SchemaFacets::kFraction,
                             {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};

// Those that are read where objects and arrays are written, or alternatives.
constexpr std::string_view kElsewhere[] = {"$ref",
                                           "allOf",
                                           "anyOf",
                                           "oneOf",
                                           "properties",
                                           "required",
                                           "additionalProperties",
                                           "propertyNames",
                                           "items",
                                           "patternProperties",
                                           "prefixItems",
                                           "additionalItems",
                                           "unevaluatedProperties",
                                           "unevaluatedItems"};

constexpr std::string_view kNoEffect[] = {"example", "nullable", "externalDocs", "xml", "discriminator"};

template <class List>
bool contains(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != std::end(list);
}

// Nothing that an answer could break is left of it.
bool is_spent(const SchemaPiece& piece) {
  return std::ranges::all_of(piece.schema->get_object(), [&](const auto& member) {
    const std::string_view name = member.key();
    return is_annotation(name) || contains(kNoEffect, name) || name == "$ref" || name == "allOf" ||
           (name == "anyOf" && (piece.done & SchemaPiece::kAnyOf) != 0) ||
           (name == "oneOf" && (piece.done & SchemaPiece::kOneOf) != 0);
  });
}

void narrow(std::optional<NumberLanguage::Bound>& bound, NumberLanguage::Bound by, bool low) {
  const bool tighter =
      !bound || (low ? bound->value < by.value : by.value < bound->value) || (bound->value == by.value && by.open);
  if (tighter) bound = std::move(by);
}

}  // namespace

bool SchemaMerger::expand(SchemaPieces& pieces) {
  SchemaPieces out;
  std::set<const json::value*> known;
  for (const SchemaPiece& piece : pieces) known.insert(piece.schema);
  // From the back, so that what a schema refers to comes right behind it.
  SchemaPieces todo(pieces.rbegin(), pieces.rend());
  while (!todo.empty() && !source_.failed()) {
    SchemaPiece piece = todo.back();
    todo.pop_back();
    if (piece.schema->is_bool()) {
      if (!piece.schema->get_bool()) return false;
      continue;
    }
    if (!piece.schema->is_object()) {
      source_.refuse(piece.schema, "", "must be a schema: an object, true or false");
      return false;
    }
    check_keywords(piece.schema);
    work_ += 1 + piece.schema->get_object().size();
    if (work_ > kMergeWorkMax) source_.refuse(&source_.root(), "", "is too complex: too many parts come together");
    if ((piece.done & SchemaPiece::kReferences) == 0) {
      piece.done |= SchemaPiece::kReferences;
      std::vector<const json::value*> more;
      if (const json::value* target = source_.target(piece.schema)) more.push_back(target);
      const json::array* all = array_keyword(piece.schema, "allOf");
      for (std::size_t i = 0; all != nullptr && i < all->size(); ++i) {
        more.push_back(source_.child(piece.schema, "allOf", i, (*all)[i]));
      }
      for (auto each = more.rbegin(); each != more.rend(); ++each) {
        if (known.insert(*each).second || (*each)->is_bool()) todo.push_back({*each});
      }
    }
    if (!is_spent(piece)) out.push_back(piece);
  }
  pieces = std::move(out);
  return !source_.failed();
}

void SchemaMerger::check_keywords(const json::value* schema) {
  if (!checked_.insert(schema).second) return;
  source_.check_cycles(schema);
  for (const std::string_view name : {"allOf", "anyOf", "oneOf"}) {
    const json::value* list = keyword_of(schema, name);
    if (list != nullptr && (!list->is_array() || list->get_array().empty())) {
      source_.refuse(schema, name, "must be an array with at least one schema");
    }
  }
}

SchemaFacets SchemaMerger::facets(const SchemaPieces& pieces) {
  SchemaFacets out;
  bool typed = false;
  for (const SchemaPiece& piece : pieces) {
    const json::object& schema = piece.schema->get_object();
    for (const auto& [keyword, value] : schema) take(piece.schema, keyword, value, out);
    take_unevaluated(piece);
    typed = typed || schema.contains("type") || schema.contains("const") || schema.contains("enum");
    work_ += schema.size();
  }
  for (const Family& family : kFamilies) {
    if (typed) break;
    typed = std::ranges::any_of(pieces, [&](const SchemaPiece& piece) {
      return std::ranges::any_of(family.keywords,
                                 [&](std::string_view name) { return piece.schema->get_object().contains(name); });
    });
    if (typed) out.types &= family.types;
  }
  out.number.whole = (out.types & SchemaFacets::kFraction) == 0;
  out.text.most = out.text.most == GbnfPart::kNoLimit ? out.text.most : std::min(out.text.most, kCountMax);
  if (out.items_most != GbnfPart::kNoLimit) out.items_most = std::min(out.items_most, kCountMax);
  if (out.members_most != GbnfPart::kNoLimit) out.members_most = std::min(out.members_most, kCountMax);
  if (pieces.size() == 1) check_order(pieces, out);
  return out;
}

// What no value fits is a mistake where one schema says so; several may be alternatives that do not go together.
void SchemaMerger::check_order(const SchemaPieces& pieces, const SchemaFacets& facets) {
  const json::value* schema = pieces.front().schema;
  if (facets.text.least > facets.text.most) source_.refuse(schema, "minLength", "must not be above maxLength");
  if (facets.items_least > facets.items_most) source_.refuse(schema, "minItems", "must not be above maxItems");
  if (facets.members_least > facets.members_most) {
    source_.refuse(schema, "minProperties", "must not be above maxProperties");
  }
  if (facets.types == 0) source_.refuse(schema, "type", "leaves no type that a value could have");
}

void SchemaMerger::take(const json::value* schema, std::string_view keyword, const json::value& value,
                        SchemaFacets& out) {
  if (keyword == "type") return take_type(schema, value, out);
  if (keyword == "const" || keyword == "enum") return take_values(schema, keyword, value, out);
  if (keyword == "not") return take_not(schema, value, out);
  if (take_number(schema, keyword, value, out)) return;
  if (keyword == "pattern" || keyword == "format" || keyword == "minLength" || keyword == "maxLength") {
    return take_text(schema, keyword, value, out);
  }
  if (keyword == "minItems" || keyword == "minProperties") {
    const auto least = count(schema, keyword, value);
    if (!least) return;
    if (*least > kCountMax) {
      return source_.refuse(schema, keyword, "may be at most " + std::to_string(kCountMax));
    }
    std::uint32_t& kept = keyword == "minItems" ? out.items_least : out.members_least;
    kept = std::max(kept, *least);
    if (keyword == "minItems") out.items_least_said = true;
    return;
  }
  if (keyword == "maxItems" || keyword == "maxProperties") {
    const auto most = count(schema, keyword, value);
    std::uint32_t& kept = keyword == "maxItems" ? out.items_most : out.members_most;
    if (most) kept = std::min(kept, *most);
    return;
  }
  if (keyword == "uniqueItems") {
    if (value.is_bool() && !value.get_bool()) return;
    const json::value* most = keyword_of(schema, "maxItems");
    if (most != nullptr && most->is_int64() && most->get_int64() <= 1) return;
    return source_.drop(schema, keyword, "is not supported here: keyword uniqueItems");
  }
  if (is_annotation(keyword) || contains(kNoEffect, keyword) || contains(kElsewhere, keyword)) return;
  source_.drop(schema, keyword, "is not supported here: keyword " + std::string(keyword));
}

// Beside what is declared nothing else is written, unless additionalProperties or items ask for it.
void SchemaMerger::take_unevaluated(const SchemaPiece& piece) {
  for (const std::string_view keyword : {"unevaluatedProperties", "unevaluatedItems"}) {
    const json::value* value = keyword_of(piece.schema, keyword);
    if (value == nullptr || (value->is_bool() && (value->get_bool() || (piece.done & SchemaPiece::kOuter) != 0)))
      continue;
    source_.drop(
        piece.schema, keyword,
        "is supported as true, and as false where it is not beside other schemas: keyword " + std::string(keyword));
  }
}

void SchemaMerger::take_type(const json::value* schema, const json::value& value, SchemaFacets& out) {
  unsigned types = 0;
  const json::array list = value.is_array() ? value.get_array() : json::array(1, value);
  for (const json::value& each : list) {
    const auto* word = each.if_string();
    const auto known = word != nullptr ? std::ranges::find(kTypeWords, std::string_view(*word)) : std::end(kTypeWords);
    if (known == std::end(kTypeWords)) {
      return source_.refuse(schema, "type",
                            "must be object, array, string, integer, number, boolean or null, or an "
                            "array of these");
    }
    types |= kTypeBits[known - std::begin(kTypeWords)];
  }
  if (list.empty()) return source_.refuse(schema, "type", "must not be empty");
  const json::value* nullable = keyword_of(schema, "nullable");
  if (nullable != nullptr && nullable->is_bool() && nullable->get_bool()) types |= SchemaFacets::kNull;
  out.types &= types;
}

void SchemaMerger::take_values(const json::value* schema, std::string_view keyword, const json::value& value,
                               SchemaFacets& out) {
  std::vector<const json::value*> list;
  if (keyword == "const") {
    list.push_back(&value);
  } else {
    const json::array* all = value.if_array();
    if (all == nullptr || all->empty())
      return source_.refuse(schema, "enum", "must be an array with at least one value");
    for (const json::value& each : *all) list.push_back(&each);
  }
  if (!out.values) {
    out.values = std::move(list);
    return;
  }
  work_ += out.values->size() * list.size();
  if (work_ > kMergeWorkMax) return source_.refuse(schema, keyword, "is too large to be compared with another one");
  std::erase_if(*out.values, [&](const json::value* one) {
    return std::ranges::none_of(list, [&](const json::value* other) { return *one == *other; });
  });
}

std::optional<std::uint32_t> SchemaMerger::count(const json::value* schema, std::string_view keyword,
                                                 const json::value& value) {
  double number = -1;
  if (value.is_int64()) number = static_cast<double>(value.get_int64());
  if (value.is_uint64()) number = static_cast<double>(value.get_uint64());
  if (value.is_double()) number = value.get_double();
  if (!(number >= 0) || std::trunc(number) != number) {
    source_.refuse(schema, keyword, "must be a whole number that is not negative");
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(std::min(number, 1e9));
}

bool SchemaMerger::take_number(const json::value* schema, std::string_view keyword, const json::value& value,
                               SchemaFacets& out) {
  if (keyword == "multipleOf") {
    const auto step = decimal_of(value);
    if (!step || step->negative || step->is_zero()) {
      source_.refuse(schema, keyword, "must be a number above 0");
    } else {
      out.number.steps.push_back(*step);
    }
    return true;
  }
  if (keyword == "minimum" || keyword == "maximum" || keyword == "exclusiveMinimum" || keyword == "exclusiveMaximum") {
    take_bound(schema, keyword, value, out);
    return true;
  }
  return false;
}

void SchemaMerger::take_bound(const json::value* schema, std::string_view keyword, const json::value& value,
                              SchemaFacets& out) {
  const bool low = keyword.ends_with("inimum");
  const bool exclusive = keyword.starts_with("exclusive");
  if (exclusive && value.is_bool()) return;  // of draft 4, read with its bound
  const auto bound = decimal_of(value);
  if (!bound) return source_.refuse(schema, keyword, "must be a number");
  const json::value* open = keyword_of(schema, low ? "exclusiveMinimum" : "exclusiveMaximum");
  const bool also = !exclusive && open != nullptr && open->is_bool() && open->get_bool();
  constexpr std::size_t kDigitsMax = 18;
  const bool far = bound->whole.size() > kDigitsMax + 2;
  if (far && bound->negative == low) return;  // no number that is written gets there
  if (far || bound->fraction.size() > 2 * kDigitsMax) {
    return source_.refuse(schema, keyword, "has too many digits: at most " + std::to_string(kDigitsMax));
  }
  narrow(low ? out.number.low : out.number.high, {*bound, exclusive || also}, low);
}

std::shared_ptr<const TextPattern> SchemaMerger::pattern(const json::value* schema, std::string_view keyword,
                                                         std::string_view written) {
  const auto known = patterns_.find(written);
  if (known != patterns_.end()) return known->second;
  TextPattern::Fault fault;
  auto read = TextPattern::read(written, fault);
  std::shared_ptr<const TextPattern> out;
  if (read) {
    out = std::make_shared<const TextPattern>(std::move(*read));
  } else if (fault.unsupported) {
    source_.drop(schema, keyword, fault.why + ", which is not supported");
    return nullptr;
  } else {
    source_.refuse(schema, keyword, "is no regular expression: it " + fault.why);
    return nullptr;
  }
  patterns_.emplace(written, out);
  return out;
}

void SchemaMerger::take_text(const json::value* schema, std::string_view keyword, const json::value& value,
                             SchemaFacets& out) {
  if (keyword == "format") return take_format(schema, value, out);
  if (keyword == "pattern") {
    const auto* written = value.if_string();
    if (written == nullptr) return source_.refuse(schema, keyword, "must be a regular expression");
    auto read = pattern(schema, keyword, *written);
    if (read && std::ranges::find(out.text.must, read) == out.text.must.end()) out.text.must.push_back(std::move(read));
    return;
  }
  const auto length = count(schema, keyword, value);
  if (!length) return;
  if (keyword == "maxLength") {
    out.text.most = std::min(out.text.most, *length);
  } else if (*length > kCountMax) {
    source_.refuse(schema, keyword, "may be at most " + std::to_string(kCountMax));
  } else {
    out.text.least = std::max(out.text.least, *length);
  }
}

void SchemaMerger::take_format(const json::value* schema, const json::value& value, SchemaFacets& out) {
  const auto* name = value.if_string();
  if (name == nullptr) return source_.refuse(schema, "format", "must be a string");
  if (*name == "int32") {
    narrow(out.number.low, {*Decimal::of("-2147483648"), false}, true);
    narrow(out.number.high, {*Decimal::of("2147483647"), false}, false);
    return;
  }
  if (*name == "int64" || *name == "float" || *name == "double") return;
  const auto expression = format_expression(*name);
  if (!expression) return source_.drop(schema, "format", "is not supported: format " + std::string(*name));
  if (expression->empty()) return;
  auto read = pattern(schema, "format", *expression);
  if (read && std::ranges::find(out.text.must, read) == out.text.must.end()) out.text.must.push_back(std::move(read));
}

// Types, and texts and null, can be left out; what else is not to be cannot.
void SchemaMerger::take_not(const json::value* schema, const json::value& value, SchemaFacets& out) {
  const auto unsupported = [&] { source_.drop(schema, "not", "is supported for types, texts and null only"); };
  if (value.is_bool()) {
    if (value.get_bool()) out.types = 0;
    return;
  }
  if (!value.is_object()) return source_.refuse(schema, "not", "must be a schema");
  std::size_t constraints = 0;
  for (const auto& [name, inner] : value.get_object()) constraints += is_annotation(name) ? 0 : 1;
  if (constraints == 0) out.types = 0;
  if (constraints != 1) return constraints == 0 ? void() : unsupported();
  if (keyword_of(&value, "type") != nullptr) {
    SchemaFacets without;
    take_type(&value, value.get_object().at("type"), without);
    if ((without.types & SchemaFacets::kFraction) == 0 && (without.types & SchemaFacets::kInteger) != 0) {
      return unsupported();
    }
    out.types &= ~without.types;
    return;
  }
  std::vector<const json::value*> list;
  if (const json::value* one = keyword_of(&value, "const")) list.push_back(one);
  if (const json::array* all = array_keyword(&value, "enum")) {
    for (const json::value& each : *all) list.push_back(&each);
  }
  std::vector<std::string_view> texts;
  for (const json::value* each : list) {
    if (each->is_null()) out.types &= ~unsigned{SchemaFacets::kNull};
    if (each->is_string()) texts.emplace_back(each->get_string());
    if (!each->is_null() && !each->is_string()) return unsupported();
  }
  if (list.empty()) return unsupported();
  if (!texts.empty()) out.text.must_not.push_back(std::make_shared<const TextPattern>(TextPattern::one_of(texts)));
}

}  // namespace chasqui
