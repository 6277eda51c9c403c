#include "store/http_refusal.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "store/xml_text.h"

namespace chasqui::store {
namespace {

constexpr std::size_t kCodeMax = 64;
constexpr std::array<std::string_view, 6> kFull = {"EntityTooLarge",    "QuotaExceeded",
                                                   "XMinioStorageFull", "InsufficientStorage",
                                                   "InsufficientSpace", "XMinioAdminBucketQuotaExceeded"};
constexpr std::array<std::string_view, 4> kBusy = {"SlowDown", "ServiceUnavailable", "TooManyRequests",
                                                   "RequestLimitExceeded"};

ErrorCode code_of_status(int status) {
  switch (status) {
    case 401:
    case 403: return ErrorCode::forbidden;
    case 404:
    case 410: return ErrorCode::not_found;
    case 413:
    case 507: return ErrorCode::storage_full;
    case 429:
    case 503: return ErrorCode::overloaded;
    default: return ErrorCode::unavailable;
  }
}

}  // namespace

Error refusal_of(const HttpAnswer& answer, const std::string& store, std::string_view code) {
  if (answer.status == 0) return {ErrorCode::unavailable, store + " does not answer: " + answer.why, ""};
  Error error{code_of_status(answer.status), store + " answers with status " + std::to_string(answer.status), ""};
  if (!code.empty()) error.message += " (" + std::string(code) + ')';
  if (std::ranges::find(kFull, code) != kFull.end()) error.code = ErrorCode::storage_full;
  if (std::ranges::find(kBusy, code) != kBusy.end()) error.code = ErrorCode::overloaded;
  if (error.code == ErrorCode::overloaded) error.retry_after = answer.retry_after;
  return error;
}

std::string s3_code(const HttpAnswer& answer) {
  const auto document = read_xml(answer.text());
  if (!document || document->name != "Error") return {};
  const std::string_view code = document->text_of("Code");
  // It goes into messages and the log.
  if (code.size() > kCodeMax || !std::ranges::all_of(code, [](char c) { return is_ascii_word_or(".", c); })) return {};
  return std::string(code);
}

}  // namespace chasqui::store
