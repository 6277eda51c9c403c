// What an answer has to look like, in every form that clients say it: `grammar` (GBNF), `json_schema`, and OpenAI's
// `response_format`. Pure; offload pool, since large schemas take long.
#pragma once

#include "api/body/fields.h"
#include "core/request.h"

namespace chasqui {

// At most one of them, as the draft's grammar. Mistakes are left in `fields`.
void read_constraint(Fields& fields, RequestDraft& draft);

// A schema as a grammar. Errors name the keyword, under `path`.
Result<Grammar> schema_constraint(const boost::json::value& schema, const std::string& path);

}  // namespace chasqui
