// The dialects whose errors have OpenAI's shape (api/core/errors): its own, and those of llama-server and of what is
// ours.
#pragma once

#include "api/core/dialect.h"

namespace chasqui {

extern const Dialect kOpenAi;       // /v1/…
extern const Dialect kLlamaServer;  // its own routes, beside OpenAI's
extern const Dialect kChasqui;      // sessions, and what concerns the server itself

}  // namespace chasqui
