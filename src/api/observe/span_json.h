// A request's span tree in OTLP's JSON, with the names of OpenTelemetry's conventions for generative AI. Pure, any
// thread; some ten microseconds for each request, so it belongs in the offload pool.
//
//   chat MODEL ─┬─ tokenize ─ queue ─ prefill ─ decode ─ write      one after the other, without gaps
//               └───────────────────── chunk, chunk …               inside prefill
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/core/request_log.h"

namespace chasqui {

struct SpanSource {
  std::string version;
  std::int64_t unix_zero = 0;  // see base/wall_time.h
};

// {"resourceSpans":[…]} of all of them.
std::string spans_json(const std::vector<std::shared_ptr<RequestRecord>>& records, const SpanSource& source);

}  // namespace chasqui
