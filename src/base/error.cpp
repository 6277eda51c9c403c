#include "base/error.h"

#include <cstdlib>

#include "base/log.h"

namespace chasqui {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request: return "invalid_request";
    case ErrorCode::context_too_long: return "context_too_long";
    case ErrorCode::unauthorized: return "unauthorized";
    case ErrorCode::forbidden: return "forbidden";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::conflict: return "conflict";
    case ErrorCode::too_large: return "too_large";
    case ErrorCode::quota_exceeded: return "quota_exceeded";
    case ErrorCode::overloaded: return "overloaded";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::model_failure: return "model_failure";
    case ErrorCode::not_supported: return "not_supported";
    case ErrorCode::storage_full: return "storage_full";
    case ErrorCode::internal: return "internal";
  }
  return "internal";
}

void check_failed(const char* condition, const char* file, int line, std::string_view note) {
  log_error("check failed", {{"condition", condition}, {"file", file}, {"line", line}, {"note", note}});
  std::abort();
}

}  // namespace chasqui
