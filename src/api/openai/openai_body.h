// The fields that the generating routes share, besides the prompt: sampling and limits, and how the answer is to be
// delivered. Pure; offload pool.
#pragma once

#include <string_view>
#include <vector>

#include "api/body/fields.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "api/openai/openai_json.h"

namespace chasqui {

// A key may promise less urgency than its holder asks for: the request is served, only not before others.
void read_common_fields(const Caller& caller, Fields& fields, RequestDraft& draft);

// What the routes of OpenAI's shape have in common.
struct OpenAiBody {
  RequestDraft draft;
  AnswerHead head;  // with n and best_of
  bool stream = false;
  bool verbose = false;

  // Adds `requests` to what is told where `verbose` asks for it.
  void show_requests(const ServedModel& served, const std::vector<RequestPtr>& requests);
};

// `draft` holds the defaults; mistakes are left in `fields`.
OpenAiBody read_openai_body(const ServedModel& served, const Caller& caller, Fields& fields, std::string_view id_prefix,
                            RequestDraft draft);

}  // namespace chasqui
