// llama-server's own POST /completion and /completions: its shapes, `completion_probabilities`, `generation_settings`.
// Any thread; `served` is only read.
#pragma once

#include "api/body/fields.h"
#include "api/core/answer.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "model/media_reader.h"

namespace chasqui {

Result<Answer> prepare_native(const ServedModel& served, const Caller& caller, const std::string& body);

// What the routes of this shape have in common.
struct NativeBody {
  RequestDraft draft;
  std::int32_t n = 1;
  bool stream = false;
  bool return_tokens = false;
  std::vector<std::string> shown;  // response_fields; empty: all
};
NativeBody read_native_body(const ServedModel& served, const Caller& caller, Fields& fields);
Result<Answer> native_answer(const ServedModel& served, NativeBody body, std::vector<MediaPrompt> prompts);

}  // namespace chasqui
