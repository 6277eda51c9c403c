// Arrays: what each item must be, and how many there are.
#include <algorithm>

#include "api/schema/schema_rules.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

struct ItemKeywords {
  const json::array* first = nullptr;
  std::string_view first_name = "prefixItems";
  const json::value* rest = nullptr;
  std::string_view rest_name = "items";
};

// Before draft 2020-12 items was an array where prefixItems is one now.
ItemKeywords item_keywords(const json::value* schema) {
  ItemKeywords out;
  out.first = array_keyword(schema, "prefixItems");
  if (out.first == nullptr && array_keyword(schema, "items") != nullptr) {
    out = {array_keyword(schema, "items"), "items", nullptr, "additionalItems"};
  }
  out.rest = keyword_of(schema, out.rest_name);
  return out;
}

class ArrayWriter {
 public:
  ArrayWriter(SchemaRules& rules, const SchemaPieces& pieces, const SchemaFacets& facets)
      : rules_(rules), pieces_(pieces), least_(facets.items_least), most_(facets.items_most) {
    for (const SchemaPiece& piece : pieces) {
      const ItemKeywords words = item_keywords(piece.schema);
      const json::value* unevaluated = keyword_of(piece.schema, "unevaluatedItems");
      closed_ = closed_ || (unevaluated != nullptr && unevaluated->is_bool() && !unevaluated->get_bool());
      if (words.first != nullptr) first_ = std::max(first_, words.first->size());
      described_ = described_ || words.rest != nullptr;
      const json::value* prefix = keyword_of(piece.schema, "prefixItems");
      if (prefix != nullptr && (!prefix->is_array() || prefix->get_array().empty())) {
        rules.source().refuse(piece.schema, "prefixItems", "must be an array with at least one schema");
      }
    }
    if (first_ > 0 && !facets.items_least_said) {
      least_ = static_cast<std::uint32_t>(std::min<std::size_t>(first_, most_));
    }
  }

  std::string write() {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < first_ && i < most_; ++i) {
      items.push_back(rules_.rule_of(at(i)));
      if (items.back().empty()) {
        items.pop_back();
        most_ = static_cast<std::uint32_t>(i);
      }
    }
    std::string rest;
    const bool more = described_ || (first_ == 0 && !closed_);
    if (more && most_ > items.size()) rest = rules_.rule_of(at(first_));
    if (rest.empty()) most_ = std::min(most_, static_cast<std::uint32_t>(items.size()));
    if (least_ > most_) {
      if (pieces_.size() == 1 && !rules_.source().failed()) {
        rules_.source().refuse(pieces_.front().schema, "minItems", "asks for more items than there can be");
      }
      return "";
    }
    const std::string space = rules_.space();
    std::string body = rest.empty() ? "" : repeated(rest, items.size());
    for (std::size_t i = items.size(); i-- > 0;) {
      body = (i > 0 ? "\",\" " + space + ' ' : "") + items[i] + (body.empty() ? "" : ' ' + body);
      if (i >= least_) body = '(' + rules_.text().rule(body) + ")?";
    }
    return "\"[\" " + space + ' ' + (body.empty() ? "" : body + ' ' + space + ' ') + "\"]\"";
  }

 private:
  SchemaPieces at(std::size_t index) {
    SchemaPieces out;
    for (const SchemaPiece& piece : pieces_) {
      const ItemKeywords words = item_keywords(piece.schema);
      if (words.first != nullptr && index < words.first->size()) {
        out.push_back({rules_.source().child(piece.schema, words.first_name, index, (*words.first)[index])});
      } else if (words.rest != nullptr) {
        out.push_back({rules_.source().child(piece.schema, words.rest_name, *words.rest)});
      }
    }
    return out;
  }

  // Behind `before` items: as many more as there may be.
  std::string repeated(const std::string& item, std::size_t before) {
    const auto so_far = static_cast<std::uint32_t>(before);
    const std::uint32_t least = least_ > so_far ? least_ - so_far : 0;
    const std::uint32_t most = most_ == GbnfPart::kNoLimit ? most_ : most_ - so_far;
    const std::string next = "(\",\" " + rules_.space() + ' ' + item + ')';
    if (before > 0) return gbnf_times(next, least, most);
    const std::uint32_t further = most == GbnfPart::kNoLimit ? most : most - 1;
    const std::string list = item + ' ' + gbnf_times(next, least > 0 ? least - 1 : 0, further);
    return least > 0 ? list : '(' + list + ")?";
  }

  SchemaRules& rules_;
  const SchemaPieces& pieces_;
  std::uint32_t least_;
  std::uint32_t most_;
  std::size_t first_ = 0;   // items with schemas of their own
  bool described_ = false;  // something is said of the others
  bool closed_ = false;
};

}  // namespace

std::string array_body(SchemaRules& rules, const SchemaPieces& pieces, const SchemaFacets& facets) {
  return ArrayWriter(rules, pieces, facets).write();
}

}  // namespace chasqui
