// Rules for values, one for each set of schemas that they must fit at once; those that are needed further on are
// written one after the other, so that a chain of schemas costs no stack. Lives as long as one schema is being read;
// one thread.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "api/schema/json_schema.h"
#include "api/schema/schema_facets.h"
#include "api/schema/schema_values.h"

namespace chasqui {

class SchemaRules {
 public:
  SchemaRules(SchemaSource& source, SchemaOrder order)
      : source_(source), order_(order), merger_(source), values_(source, merger_) {}

  SchemaSource& source() { return source_; }
  SchemaOrder order() const { return order_; }
  SchemaMerger& merger() { return merger_; }
  SchemaValues& values() { return values_; }
  RuleText& text() { return text_; }

  // The name of the rule for what fits `pieces`; empty: nothing does, as far as can be told at once.
  std::string rule_of(SchemaPieces pieces);
  // Writes all rules that were asked for.
  void write_all();

  // Blanks between tokens, as llama.cpp's converter allows them.
  std::string space() { return text_.rule(R"("" | " " | "\n"{1,2} [ \t]{0,20})"); }
  std::string character() { return any_json_character(text_); }
  // `expression` of GBNF between quotes.
  static std::string quoted(const std::string& expression) { return "\"\\\"\" " + expression + " \"\\\"\""; }

 private:
  struct Todo {
    std::string name;
    SchemaPieces pieces;
  };

  std::string body_of(const SchemaPieces& pieces);
  std::string alternatives(const SchemaPieces& pieces, std::size_t index, std::string_view keyword,
                           SchemaPiece::Done done);
  void check_disjoint(const boost::json::value* schema, const boost::json::array& list);
  void drop_unevaluated(const SchemaPieces& pieces, const std::vector<const boost::json::value*>& values);
  std::string listed(const SchemaPieces& pieces, const SchemaFacets& facets);
  std::string text_body(const SchemaPieces& pieces, const SchemaFacets& facets);
  std::string number_body(const SchemaPieces& pieces, const SchemaFacets& facets);
  void refuse_alone(const SchemaPieces& pieces, std::initializer_list<std::string_view> keywords,
                    const std::string& why);

  SchemaSource& source_;
  const SchemaOrder order_;
  SchemaMerger merger_;
  SchemaValues values_;
  RuleText text_;
  std::map<SchemaPieces, std::string> names_;
  std::deque<Todo> todo_;
};

// Empty: no such array or object.
std::string array_body(SchemaRules& rules, const SchemaPieces& pieces, const SchemaFacets& facets);
std::string object_body(SchemaRules& rules, const SchemaPieces& pieces, const SchemaFacets& facets);

}  // namespace chasqui
