#include "pull/hub_refusal.h"

#include <gtest/gtest.h>

namespace chasqui::pull {
namespace {

using Ending = TransferAnswer::Ending;

HubQuestion question(bool with_token = false, const std::string& file = "") {
  return {"https://hub", "user/repo", "v2", file, with_token};
}

TransferAnswer answer(int status, const std::string& code = "", const std::string& said = "") {
  TransferAnswer out;
  out.ending = Ending::answered;
  out.head.status = status;
  out.head.headers = {{"x-error-code", code}, {"x-error-message", said}};
  return out;
}

TEST(HubRefusal, SaysWhatIsWrongAndWhatToDo) {
  EXPECT_EQ(
      refusal_of(question(), answer(401)).message,
      "user/repo: the hub answers 401: there is no such repository, or it is private; for a private one set HF_TOKEN, "
      "or give --token");
  EXPECT_EQ(
      refusal_of(question(true), answer(401)).message,
      "user/repo: the hub answers 401: there is no such repository, or it is private and the token is not one of its "
      "readers");
  EXPECT_EQ(
      refusal_of(question(), answer(403, "GatedRepo", "Access is restricted")).message,
      "user/repo: the hub answers 403: Access is restricted. Its conditions are at https://hub/user/repo; accept them, "
      "and set HF_TOKEN to a token of that account");
  EXPECT_EQ(refusal_of(question(), answer(404, "RepoNotFound")).message,
            "there is no repository user/repo at https://hub");
  EXPECT_EQ(refusal_of(question(), answer(404, "RevisionNotFound")).message, "user/repo has no revision v2");
  EXPECT_EQ(refusal_of(question(false, "a.gguf"), answer(404)).message, "user/repo has no file a.gguf");
}

TEST(HubRefusal, SaysWhatIsWorthAnotherTry) {
  for (const int status : {408, 429, 500, 502, 503}) {
    EXPECT_EQ(refusal_of(question(), answer(status)).code, ErrorCode::unavailable) << status;
  }
  for (const int status : {301, 400, 401, 403, 404, 410}) {
    EXPECT_NE(refusal_of(question(), answer(status)).code, ErrorCode::unavailable) << status;
  }
  TransferAnswer broken;
  broken.why = "it broke";
  EXPECT_EQ(refusal_of(question(), broken).code, ErrorCode::unavailable);
  EXPECT_EQ(refusal_of(question(), broken).message, "https://hub: it broke");
  for (const Ending ending : {Ending::unreachable, Ending::untrusted}) {
    broken.ending = ending;
    EXPECT_NE(refusal_of(question(), broken).code, ErrorCode::unavailable);
  }
}

}  // namespace
}  // namespace chasqui::pull
