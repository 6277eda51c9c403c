// The one table that turns an ErrorCode into an HTTP status, and into OpenAI's error type and body; other dialects have
// their own types and bodies. Shape:
// {"error":{"code":400,"message":"…","type":"invalid_request_error","param":"max_tokens"}}; where a prompt does not fit
// also `n_prompt_tokens` and `n_ctx`, which agents look for before they shorten it. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui {

struct ErrorRow {
  int status;
  std::string_view type;  // OpenAI's and llama-server's words
  bool retry;             // trying again, here or elsewhere, may help
};

ErrorRow error_row(ErrorCode code);

// The JSON body for `error`.
std::string error_body(const Error& error);
// The same with OpenAI's word as `code` where a prompt does not fit: its clients look for that one.
std::string openai_error_body(const Error& error);
// To what an error may say, with "…" where something is missing.
void cut_text(std::string& text);
// The same for faults that the HTTP layer finds before any handler runs (404, 405, 408, 413, 431 …).
std::string error_body(int status, std::string_view message);

}  // namespace chasqui
