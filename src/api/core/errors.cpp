#include "api/core/errors.h"

#include "base/json_writer.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace chasqui {
namespace {

// `code`: in place of the status; empty: that.
std::string body(int status, std::string_view message, std::string_view type, const Error& error,
                 std::string_view code = {}) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_object("error");
  if (code.empty()) {
    json.field("code", status);
  } else {
    json.field("code", code);
  }
  json.field("message", message);
  json.field("type", type);
  json.key("param");
  if (error.field.empty()) {
    json.null();
  } else {
    json.string(error.field);
  }
  if (error.context_tokens > 0) {
    json.field("n_prompt_tokens", error.prompt_tokens);
    json.field("n_ctx", error.context_tokens);
  }
  json.end_object();
  json.end_object();
  return out;
}

std::string_view type_of_status(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

}  // namespace

ErrorRow error_row(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request: return {400, "invalid_request_error", false};
    case ErrorCode::context_too_long: return {400, "exceed_context_size_error", false};
    case ErrorCode::unauthorized: return {401, "authentication_error", false};
    case ErrorCode::forbidden: return {403, "permission_error", false};
    case ErrorCode::not_found: return {404, "not_found_error", false};
    case ErrorCode::conflict: return {409, "conflict_error", false};
    case ErrorCode::too_large: return {413, "invalid_request_error", false};
    case ErrorCode::quota_exceeded: return {429, "rate_limit_error", true};
    case ErrorCode::overloaded: return {503, "unavailable_error", true};
    case ErrorCode::unavailable: return {503, "unavailable_error", true};
    case ErrorCode::model_failure: return {500, "server_error", false};
    case ErrorCode::not_supported: return {501, "not_supported_error", false};
    case ErrorCode::storage_full: return {507, "server_error", false};
    case ErrorCode::internal: return {500, "server_error", false};
  }
  return {500, "server_error", false};
}

void cut_text(std::string& text) {
  constexpr std::size_t kBytesMax = kSizeLimit<"error_bytes">;
  if (text.size() <= kBytesMax) return;
  text.resize(kBytesMax);
  for (std::size_t bytes = 1; bytes <= 3; ++bytes) {
    if (utf8_incomplete(std::string_view(text).substr(text.size() - bytes))) text.resize(text.size() - bytes);
  }
  text += "…";
}

std::string error_body(const Error& error) {
  const ErrorRow row = error_row(error.code);
  return body(row.status, error.message, row.type, error);
}

std::string openai_error_body(const Error& error) {
  const ErrorRow row = error_row(error.code);
  const bool too_long = error.code == ErrorCode::context_too_long;
  return body(row.status, error.message, row.type, error, too_long ? "context_length_exceeded" : "");
}

std::string error_body(int status, std::string_view message) {
  return body(status, message, type_of_status(status), Error{});
}

}  // namespace chasqui
