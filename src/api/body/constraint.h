// What an answer has to look like, in every form that clients say it: `grammar` (GBNF), `json_schema`, and OpenAI's
// `response_format`. Pure; offload pool, since large schemas take long.
#pragma once

#include "api/body/fields.h"
#include "core/request.h"

namespace chasqui {

// At most one of them, as the draft's grammar. Mistakes are left in `fields`.
void read_constraint(Fields& fields, RequestDraft& draft);
// The same where `response_format` means something else.
void read_grammar(Fields& fields, RequestDraft& draft);

// A schema as the draft's grammar. What cannot be kept is refused where `strict` says so, else noted in the draft.
// Errors name the keyword, under `path`.
Result<void> take_schema(const boost::json::value& schema, const std::string& path, bool strict, RequestDraft& draft);

// A schema as a grammar by llama-common's converter, which keeps all of it or refuses it. Errors name the keyword.
Result<Grammar> schema_constraint(const boost::json::value& schema, const std::string& path);

}  // namespace chasqui
