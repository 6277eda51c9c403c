// JSON Schema as a grammar for the engine of model/grammar: written from the schema's parts, each set of parts that a
// value must fit all at once one rule. What cannot be kept is named, and refused where `strict` says so; else it is
// left out, and the answer may not keep to it. Pure; offload pool.
//
// What is written is never wider than the schema but for what is dropped, and narrower where a schema leaves open what
// models take for closed: beside declared properties there are no others unless additionalProperties or
// patternProperties ask for them, and prefixItems are all written unless minItems says less.
//
// bounded: by the limits of schemas and of what they are made into (base/limits.h).
#pragma once

#include <string>
#include <vector>

#include <boost/json.hpp>

#include "base/error.h"
#include "core/schema_order.h"

namespace chasqui {

struct SchemaGrammar {
  std::string text;                  // GBNF
  std::vector<std::string> dropped;  // as "#/properties/a contains"
};

// `path` is what errors call the schema. Errors name the keyword, and in the text its JSON pointer.
Result<SchemaGrammar> write_schema_grammar(const boost::json::value& schema, const std::string& path, bool strict,
                                           SchemaOrder order = SchemaOrder::written);

}  // namespace chasqui
