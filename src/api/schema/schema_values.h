// Whether a value of const or enum fits the schemas that it stands beside, and how it is written. Lives as long as one
// schema is being read; one thread.
#pragma once

#include <string>
#include <vector>

#include <boost/json.hpp>

#include "api/schema/schema_facets.h"

namespace chasqui {

class SchemaValues {
 public:
  SchemaValues(SchemaSource& source, SchemaMerger& merger) : source_(source), merger_(merger) {}

  bool fits(const boost::json::value& value, SchemaPieces pieces, std::size_t depth = 0);
  // Those of facets.values that fit the rest. REQUIRES: `facets` are those of `pieces`, which are expanded
  std::vector<const boost::json::value*> fitting(const SchemaPieces& pieces, const SchemaFacets& facets);

 private:
  bool fits_facets(const boost::json::value& value, const SchemaPieces& pieces, const SchemaFacets& facets,
                   std::size_t depth);
  bool fits_alternatives(const boost::json::value& value, const SchemaPiece& piece, std::size_t depth);
  bool fits_members(const boost::json::object& object, const boost::json::value* schema, std::size_t depth);
  bool fits_items(const boost::json::array& array, const boost::json::value* schema, std::size_t depth);

  SchemaSource& source_;
  SchemaMerger& merger_;
};

// Of SchemaFacets::Type; a number that is not whole is a fraction.
unsigned type_of_value(const boost::json::value& value);
bool fits_number(const boost::json::value& value, const NumberLanguage& language);
// As JSON text, numbers in their shortest form.
std::string json_of(const boost::json::value& value);

}  // namespace chasqui
