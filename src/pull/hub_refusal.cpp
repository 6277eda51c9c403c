#include "pull/hub_refusal.h"

namespace chasqui::pull {
namespace {

Error unanswered(const HubQuestion& question, const TransferAnswer& answer) {
  using enum TransferAnswer::Ending;
  const std::string what = question.endpoint + ": " + answer.why;
  switch (answer.ending) {
    case untrusted:
      return {ErrorCode::forbidden,
              what +
                  "; TLS with it cannot be trusted. Behind a proxy that signs by itself, name its certificates with "
                  "SSL_CERT_FILE",
              ""};
    case unreachable:
      return {ErrorCode::not_supported,
              what + "; is there a network? HF_ENDPOINT names another hub, https_proxy a proxy", ""};
    default: return {ErrorCode::unavailable, what, ""};
  }
}

// The hub answers so for what does not exist, too, to those whom it does not know.
std::string unknown_client(const HubQuestion& question) {
  const std::string what = question.repo + ": the hub answers 401: there is no such repository, or it is private";
  return what + (question.with_token ? " and the token is not one of its readers"
                                     : "; for a private one set HF_TOKEN, or give --token");
}

std::string closed_to_client(const HubQuestion& question, const std::string& said) {
  return question.repo + ": the hub answers 403" + (said.empty() ? "" : ": " + said) + ". Its conditions are at " +
         question.endpoint + '/' + question.repo +
         (question.with_token ? "; accept them with the account of the token"
                              : "; accept them, and set HF_TOKEN to a token of that account");
}

std::string not_there(const HubQuestion& question, const TransferAnswer& answer) {
  if (!question.file.empty()) return question.repo + " has no file " + question.file;
  const bool revision = answer.head.header("x-error-code") == "RevisionNotFound";
  return revision ? question.repo + " has no revision " + question.revision
                  : "there is no repository " + question.repo + " at " + question.endpoint;
}

}  // namespace

Error refusal_of(const HubQuestion& question, const TransferAnswer& answer) {
  if (answer.ending != TransferAnswer::Ending::answered) return unanswered(question, answer);
  const std::string said(answer.head.header("x-error-message"));
  const int status = answer.head.status;
  switch (status) {
    case 401: return {ErrorCode::unauthorized, unknown_client(question), ""};
    case 403: return {ErrorCode::forbidden, closed_to_client(question, said), ""};
    case 404: return {ErrorCode::not_found, not_there(question, answer), ""};
    default: break;
  }
  const bool later = status == 408 || status == 429 || status >= 500;
  const std::string what = question.repo + ": the hub answers " + std::to_string(status);
  Error out{later ? ErrorCode::unavailable : ErrorCode::not_supported, what + (said.empty() ? "" : ": " + said), ""};
  out.retry_after = answer.retry_after;
  return out;
}

}  // namespace chasqui::pull
