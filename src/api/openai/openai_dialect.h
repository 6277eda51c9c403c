// The dialects whose errors have OpenAI's shape (api/core/errors): its own, llama-server's and Chasqui's. None of them
// has a prefix: the row of a route says which of them is its own.
#pragma once

#include "api/core/dialect.h"

namespace chasqui {

extern const Dialect kOpenAi;       // its routes, and paths that no dialect owns
extern const Dialect kLlamaServer;  // what only llama-server has, some of it in /v1, too
extern const Dialect kChasqui;      // sessions, /generate, and what concerns the server itself

}  // namespace chasqui
