#include "api/openai/openai_body.h"

#include <algorithm>

#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/generation_fields.h"
#include "api/core/key_ring.h"
#include "api/openai/native_json.h"
#include "base/limits.h"
#include "base/random_id.h"

namespace chasqui {

namespace json = boost::json;

namespace {

const std::string kTopLogprobsAllowed = "between 0 and " + std::to_string(kCountLimit<"top_logprobs">);

// Chat: "logprobs": true and "top_logprobs": 3. Completions: "logprobs": 3.
void read_logprobs(Fields& fields, bool chat, RequestDraft& draft) {
  std::int32_t& chances = draft.sampling.chances;
  if (!chat) {
    const json::value* value = fields.any("logprobs");
    if (value == nullptr || (value->is_bool() && !value->get_bool())) return;
    const auto count = fields.integer("logprobs");
    if (count && (*count < 0 || *count > kCountLimit<"top_logprobs">)) fields.refuse("logprobs", kTopLogprobsAllowed);
    if (count) chances = static_cast<std::int32_t>(*count);
    return;
  }
  const bool asked = fields.boolean("logprobs").value_or(false);
  const auto count = fields.integer("top_logprobs");
  if (count && (*count < 0 || *count > kCountLimit<"top_logprobs">)) fields.refuse("top_logprobs", kTopLogprobsAllowed);
  if (count && *count > 0 && !asked) fields.refuse("top_logprobs", "left out unless logprobs is true");
  if (asked) chances = static_cast<std::int32_t>(count.value_or(0));
}

std::int32_t read_count(Fields& fields, std::string_view name, std::int32_t unsaid) {
  const std::int64_t count = fields.integer(name).value_or(unsaid);
  if (count < 1 || count > kCountLimit<"answers">) {
    fields.refuse(name, "between 1 and " + std::to_string(kCountLimit<"answers">));
    return unsaid;
  }
  return static_cast<std::int32_t>(count);
}

}  // namespace

void read_common_fields(const Caller& caller, Fields& fields, RequestDraft& draft) {
  read_generation_fields(fields, draft);
  fields.object("stream_options");  // also where nothing of it has an effect
  draft.service_class = std::max(draft.service_class, caller.most_urgent);
}

void OpenAiBody::show_requests(const ServedModel& served, const std::vector<RequestPtr>& requests) {
  if (!verbose) return;
  NativeHead shown = native_head(served, requests);
  shown.stream = stream;
  head.verbose = [shown = std::move(shown)](const Collected& answer, std::size_t index, bool new_line,
                                            std::string& out) { append_verbose(shown, answer, index, new_line, out); };
}

OpenAiBody read_openai_body(const ServedModel& served, const Caller& caller, Fields& fields, std::string_view id_prefix,
                            RequestDraft draft) {
  const bool chat = id_prefix.starts_with("chat");
  OpenAiBody out;
  out.draft = std::move(draft);
  read_common_fields(caller, fields, out.draft);
  read_adapters(served, fields, out.draft);
  read_logprobs(fields, chat, out.draft);
  read_constraint(fields, out.draft);
  if (chat) refuse_unsupported(fields, {"echo", "suffix"});
  out.stream = fields.boolean("stream").value_or(false);
  out.verbose = fields.boolean("verbose").value_or(false);
  out.draft.tell_cache = out.draft.tell_cache || out.verbose;
  out.head.n = read_count(fields, "n_cmpl", read_count(fields, "n", 1));
  out.head.best_of = chat ? out.head.n : read_count(fields, "best_of", out.head.n);
  if (out.head.best_of < out.head.n) fields.refuse("best_of", "at least n");
  if (out.stream && out.head.best_of > out.head.n) fields.refuse("best_of", "n in a stream");
  if (const json::object* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options");
    out.head.include_usage = inner.boolean("include_usage").value_or(false);
    if (!inner.ok()) fields.refuse(inner.error());
  }
  if (out.draft.sampling.chances >= 0) out.head.tokenizer = served.model.tokenizer.get();
  // Which are the best is told by how likely they are.
  if (out.head.best_of > out.head.n) out.draft.sampling.chances = std::max(out.draft.sampling.chances, 0);
  out.head.id = random_id(id_prefix);
  out.head.model = served.config.name;
  out.head.fingerprint = served.config.system_fingerprint;
  out.head.created = served.clock.unix_seconds();
  return out;
}

}  // namespace chasqui
