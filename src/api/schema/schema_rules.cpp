#include "api/schema/schema_rules.h"

#include <algorithm>

#include "api/schema/schema_overlap.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kRulePartsMax = kSizeLimit<"schema_parts">;
constexpr std::size_t kComparedMax = kSizeLimit<"schema_alternatives">;

void add_alternative(std::string& body, const std::string& one) {
  if (one.empty()) return;
  if (!body.empty()) body += " | ";
  body += one;
}

}  // namespace

std::string SchemaRules::rule_of(SchemaPieces pieces) {
  if (pieces.size() == 1) pieces.front().done |= SchemaPiece::kOuter;
  if (!merger_.expand(pieces)) return "";
  const auto [known, added] = names_.try_emplace(std::move(pieces));
  if (!added) return known->second;
  known->second = text_.reserve();
  if (names_.size() > kRulePartsMax) {
    source_.refuse(&source_.root(), "",
                   "has too many parts; a schema may become at most " + std::to_string(kRulePartsMax) + " of them");
  }
  todo_.push_back({known->second, known->first});
  return known->second;
}

void SchemaRules::write_all() {
  while (!todo_.empty() && !source_.failed() && !text_.too_large()) {
    const Todo todo = std::move(todo_.front());
    todo_.pop_front();
    const std::string body = body_of(todo.pieces);
    // A rule that never ends matches nothing, and the compiler leaves out what would need it.
    text_.define(todo.name, body.empty() ? "\"x\" " + todo.name : body);
  }
}

std::string SchemaRules::body_of(const SchemaPieces& pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const json::object& schema = pieces[i].schema->get_object();
    if ((pieces[i].done & SchemaPiece::kAnyOf) == 0 && schema.contains("anyOf")) {
      return alternatives(pieces, i, "anyOf", SchemaPiece::kAnyOf);
    }
    if ((pieces[i].done & SchemaPiece::kOneOf) == 0 && schema.contains("oneOf")) {
      return alternatives(pieces, i, "oneOf", SchemaPiece::kOneOf);
    }
  }
  const SchemaFacets facets = merger_.facets(pieces);
  if (source_.failed()) return "";
  if (facets.values) return listed(pieces, facets);
  std::string body;
  if ((facets.types & SchemaFacets::kObject) != 0) add_alternative(body, object_body(*this, pieces, facets));
  if ((facets.types & SchemaFacets::kArray) != 0) add_alternative(body, array_body(*this, pieces, facets));
  if ((facets.types & SchemaFacets::kString) != 0) add_alternative(body, text_body(pieces, facets));
  if ((facets.types & (SchemaFacets::kInteger | SchemaFacets::kFraction)) != 0) {
    add_alternative(body, number_body(pieces, facets));
  }
  if ((facets.types & SchemaFacets::kBoolean) != 0) add_alternative(body, R"("true" | "false")");
  if ((facets.types & SchemaFacets::kNull) != 0) add_alternative(body, R"("null")");
  return body;
}

std::string SchemaRules::alternatives(const SchemaPieces& pieces, std::size_t index, std::string_view keyword,
                                      SchemaPiece::Done done) {
  const json::value* schema = pieces[index].schema;
  const json::array& list = *array_keyword(schema, keyword);
  if (done == SchemaPiece::kOneOf) check_disjoint(schema, list);
  std::string body;
  for (std::size_t i = 0; i < list.size() && !source_.failed(); ++i) {
    SchemaPieces with = pieces;
    with[index].done |= done;
    with.insert(with.begin() + static_cast<std::ptrdiff_t>(index) + 1, {source_.child(schema, keyword, i, list[i])});
    add_alternative(body, rule_of(std::move(with)));
  }
  return body;
}

void SchemaRules::check_disjoint(const json::value* schema, const json::array& list) {
  bool disjoint = list.size() <= kComparedMax;  // each is compared with each
  for (std::size_t i = 0; i < list.size() && disjoint; ++i) {
    for (std::size_t j = i + 1; j < list.size() && disjoint; ++j) {
      const json::object* a = resolved(source_.root(), list[i]);
      const json::object* b = resolved(source_.root(), list[j]);
      disjoint = a != nullptr && b != nullptr && !a->contains("nullable") && !b->contains("nullable") &&
                 cannot_both_fit(source_.root(), *a, *b);
    }
  }
  if (disjoint) return;
  source_.drop(
      schema, "oneOf",
      "is kept only where alternatives cannot fit both: other types, or a required property with other values; "
      "it is taken as anyOf: keyword oneOf");
}

// What nothing fits is refused where one schema says it; several may be alternatives that do not go together.
void SchemaRules::refuse_alone(const SchemaPieces& pieces, std::initializer_list<std::string_view> keywords,
                               const std::string& why) {
  if (pieces.size() != 1) return;
  for (const std::string_view keyword : keywords) {
    if (keyword_of(pieces.front().schema, keyword) == nullptr) continue;
    return source_.refuse(pieces.front().schema, keyword, why);
  }
}

// What is written is declared; which of the parts of a value that is listed are, is not looked at.
void SchemaRules::drop_unevaluated(const SchemaPieces& pieces, const std::vector<const json::value*>& values) {
  const bool has_object = std::ranges::any_of(values, [](const json::value* value) { return value->is_object(); });
  const bool has_array = std::ranges::any_of(values, [](const json::value* value) { return value->is_array(); });
  for (const SchemaPiece& piece : pieces) {
    for (const auto& [keyword, matters] :
         {std::pair("unevaluatedProperties", has_object), std::pair("unevaluatedItems", has_array)}) {
      const json::value* value = keyword_of(piece.schema, keyword);
      if (!matters || value == nullptr || !value->is_bool() || value->get_bool()) continue;
      source_.drop(piece.schema, keyword, "is not supported beside const and enum: keyword " + std::string(keyword));
    }
  }
}

std::string SchemaRules::listed(const SchemaPieces& pieces, const SchemaFacets& facets) {
  std::string body;
  const std::vector<const json::value*> values = values_.fitting(pieces, facets);
  drop_unevaluated(pieces, values);
  for (const json::value* value : values) add_alternative(body, gbnf_literal(json_of(*value)));
  if (body.empty()) refuse_alone(pieces, {"enum", "const"}, "has no value that fits what stands beside it");
  return body;
}

std::string SchemaRules::text_body(const SchemaPieces& pieces, const SchemaFacets& facets) {
  std::string expression;
  switch (write_text_language(facets.text, text_, expression)) {
    case Written::yes: return quoted(expression);
    case Written::nothing_fits:
      refuse_alone(pieces, {"pattern", "format", "minLength", "not"},
                   "fits no text together with what stands beside it");
      return "";
    case Written::too_large: break;
  }
  for (const SchemaPiece& piece : pieces) {
    for (const std::string_view keyword : {"pattern", "format", "not"}) {
      if (keyword_of(piece.schema, keyword) == nullptr) continue;
      source_.refuse(piece.schema, keyword, "is too complex: it has too many states");
    }
  }
  return "";
}

std::string SchemaRules::number_body(const SchemaPieces& pieces, const SchemaFacets& facets) {
  std::string expression;
  const Written written = write_number_language(facets.number, text_, expression);
  if (written == Written::yes) return expression;
  if (written == Written::nothing_fits) {
    refuse_alone(pieces, {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"},
                 "leaves no number that fits");
    return "";
  }
  for (const SchemaPiece& piece : pieces) {
    for (const std::string_view keyword : {"multipleOf", "minimum", "maximum"}) {
      if (keyword_of(piece.schema, keyword) == nullptr) continue;
      source_.refuse(piece.schema, keyword, "has too many digits, or becomes too many states");
    }
  }
  return "";
}

Result<SchemaGrammar> write_schema_grammar(const json::value& schema, const std::string& path, bool strict,
                                           SchemaOrder order) {
  SchemaSource source(schema, path);
  SchemaRules rules(source, order);
  const std::string root = rules.rule_of({{&schema}});
  if (root.empty() && !source.failed()) source.refuse(&schema, "", "fits no value");
  rules.write_all();
  if (source.failed()) return *source.error();
  if (strict && !source.dropped().empty()) return source.dropped().front().error;
  if (rules.text().too_large()) {
    return invalid_field(path, path + " is too large: the grammar of a schema may have at most " +
                                   std::to_string(kSizeLimit<"grammar_made_bytes">) + " bytes");
  }
  SchemaGrammar out;
  out.text = rules.text().text(root);
  for (SchemaSource::Dropped& each : source.dropped()) out.dropped.push_back(each.pointer + ' ' + each.keyword);
  return out;
}

}  // namespace chasqui
