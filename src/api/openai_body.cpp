#include "api/openai_body.h"

#include <algorithm>

#include "api/generation_fields.h"
#include "base/random_id.h"

namespace chasqui {

namespace json = boost::json;

void read_common_fields(const Caller& caller, Fields& fields, RequestDraft& draft) {
  read_generation_fields(fields, draft);
  draft.service_class = std::max(draft.service_class, caller.most_urgent);
}

OpenAiBody read_openai_body(const Service& service, const Caller& caller, Fields& fields, std::string_view id_prefix,
                            RequestDraft draft) {
  OpenAiBody out;
  out.draft = std::move(draft);
  read_common_fields(caller, fields, out.draft);
  refuse_unsupported(
      fields, {"logprobs", "top_logprobs", "n_probs", "grammar", "json_schema", "echo", "suffix", "functions", "lora"});
  for (const std::string_view name : {"n", "best_of"}) {
    if (fields.integer(name).value_or(1) != 1) fields.refuse(name, "1: this version gives one answer to a request");
  }
  if (const json::object* format = fields.object("response_format")) {
    Fields inner(*format, "response_format");
    if (inner.string("type").value_or("text") != "text") inner.refuse("type", "\"text\" in this version");
    if (!inner.ok()) fields.refuse(inner.error());
  }
  out.stream = fields.boolean("stream").value_or(false);
  if (const json::object* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options");
    out.head.include_usage = inner.boolean("include_usage").value_or(false);
    if (!inner.ok()) fields.refuse(inner.error());
  }
  out.head.id = random_id(id_prefix);
  out.head.model = service.config.model_name;
  out.head.fingerprint = "chasqui-" + service.config.version;
  out.head.created = service.clock.unix_seconds();
  return out;
}

}  // namespace chasqui
