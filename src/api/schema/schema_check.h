// What of JSON Schema we keep. The converter behind us ignores keywords that it does not know, and an answer would not
// be what its schema says; so every schema is read here first, and what is not in the list below is refused by name.
// The result says the same in the words that the converter knows, or something narrower: an answer that fits it fits
// the schema. Pure; offload pool.
//
//   everywhere   $ref ("#/…"), $defs, definitions, anyOf, oneOf (where it is clear that only one can fit), allOf (of
//   one
//                schema, or of objects that do not share properties), const, enum, type (also an array)
//   object       properties, required, additionalProperties (alone; beside properties there are no others)
//   array        items, prefixItems, minItems, maxItems
//   string       one of: minLength and maxLength; pattern ("^…$"); format (date, time, date-time, uuid, email, ipv4)
//   integer      minimum, maximum, exclusiveMinimum, exclusiveMaximum
//   annotations  title, description, default, examples, deprecated, readOnly, writeOnly, $comment, $schema, $id,
//   $anchor
#pragma once

#include <boost/json.hpp>

#include "base/error.h"

namespace chasqui {

// `path` is what errors call the schema. Errors name the keyword.
Result<boost::json::object> check_schema(const boost::json::value& schema, const std::string& path);

}  // namespace chasqui
