// How a dialect formats errors. The rest of it are functions of its own: the prepare function that its routes name
// (PrepareAnswer, in api/core/answer) parses a body into an Answer, and gives it the AnswerWriter that formats
// what is generated; api/anthropic is an example. A dialect is a constant beside the rest of its files; shared code
// gets one and knows none. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui {

struct Dialect {
  std::string_view name;
  // Paths that begin with this segment are its own, also those that have no route; empty: it has none.
  // A dialect without a prefix has its faults written by the OpenAI dialect.
  std::string_view prefix;
  std::string (*error_body)(const Error& error);
  // For faults that the HTTP layer finds (404, 405, 413 …) and refusals at the gate, which have no ErrorCode.
  std::string (*fault_body)(int status, std::string_view message);
  bool sends_events = true;        // its streams are server-sent events
  std::string_view error_event{};  // the name of the event that an error in them is; empty: it has none

  bool owns(std::string_view path) const {
    return !prefix.empty() && path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
  }
};

}  // namespace chasqui
