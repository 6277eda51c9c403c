// How the fields of the table in generation_fields are read that are no plain numbers. Each reads the field `name`,
// which is there, and leaves mistakes in `fields`. Pure; offload pool.
#pragma once

#include <string_view>

#include "api/body/fields.h"
#include "core/request.h"

namespace chasqui {

void read_max_tokens(Fields& fields, std::string_view name, RequestDraft& draft);
void read_breakers(Fields& fields, std::string_view name, RequestDraft& draft);
void read_samplers(Fields& fields, std::string_view name, RequestDraft& draft);
void read_seed(Fields& fields, std::string_view name, RequestDraft& draft);
void read_logit_bias(Fields& fields, std::string_view name, RequestDraft& draft);
void read_ignore_eos(Fields& fields, std::string_view name, RequestDraft& draft);
void read_stop(Fields& fields, std::string_view name, RequestDraft& draft);
void read_stop_tokens(Fields& fields, std::string_view name, RequestDraft& draft);
void read_chances(Fields& fields, std::string_view name, RequestDraft& draft);
void read_chances_after(Fields& fields, std::string_view name, RequestDraft& draft);
void read_tell_usage(Fields& fields, std::string_view name, RequestDraft& draft);
void read_tell_progress(Fields& fields, std::string_view name, RequestDraft& draft);
void read_use_cache(Fields& fields, std::string_view name, RequestDraft& draft);
void read_tell_cache(Fields& fields, std::string_view name, RequestDraft& draft);
void read_schema_order(Fields& fields, std::string_view name, RequestDraft& draft);
void read_deterministic(Fields& fields, std::string_view name, RequestDraft& draft);
void read_draft_tokens_max(Fields& fields, std::string_view name, RequestDraft& draft);
void read_slot_label(Fields& fields, std::string_view name, RequestDraft& draft);
void read_timeout(Fields& fields, std::string_view name, RequestDraft& draft);
void read_prompt_limit(Fields& fields, std::string_view name, RequestDraft& draft);
void read_first_token_limit(Fields& fields, std::string_view name, RequestDraft& draft);
void read_predict_limit(Fields& fields, std::string_view name, RequestDraft& draft);
void read_pings(Fields& fields, std::string_view name, RequestDraft& draft);
void read_keep(Fields& fields, std::string_view name, RequestDraft& draft);
void read_discard(Fields& fields, std::string_view name, RequestDraft& draft);
void read_chunk(Fields& fields, std::string_view name, RequestDraft& draft);
void read_indent(Fields& fields, std::string_view name, RequestDraft& draft);
// What needs more than the draft: the routes read it.
void read_elsewhere(Fields& fields, std::string_view name, RequestDraft& draft);

// A JSON string or an array of them; `allowed` completes "NAME must be …".
void read_strings(Fields& fields, std::string_view name, std::vector<std::string>& out);

}  // namespace chasqui
