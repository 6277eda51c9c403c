// Where a request stands in its caller's trace: W3C Trace Context, level 1. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace chasqui {

struct TraceParent {
  std::string trace;    // 32 lower-case hexadecimal digits
  std::string parent;   // 16 of them: the caller's span; empty: the trace begins here
  std::string state;    // `tracestate`, passed on as it came
  bool sampled = true;  // false: the caller wants no spans
};

// Of the headers `traceparent` and `tracestate`. Nothing when the first is missing or not as the standard has it, and
// then the second does not count either.
std::optional<TraceParent> read_trace_parent(std::string_view traceparent, std::string_view tracestate);

// Random and not zero: 32 digits for a trace, 16 for a span.
std::string random_hex(std::size_t digits);

}  // namespace chasqui
