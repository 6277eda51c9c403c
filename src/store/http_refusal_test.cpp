#include "store/http_refusal.h"

#include <gtest/gtest.h>

#include "store/fake_exchanges.h"

namespace chasqui::store {
namespace {

TEST(HttpRefusal, SaysWhatAStatusMeans) {
  const auto code = [](int status) { return refusal_of(fake_answer(status), "the store x").code; };
  EXPECT_EQ(code(401), ErrorCode::forbidden);
  EXPECT_EQ(code(403), ErrorCode::forbidden);
  EXPECT_EQ(code(404), ErrorCode::not_found);
  EXPECT_EQ(code(413), ErrorCode::storage_full);
  EXPECT_EQ(code(507), ErrorCode::storage_full);
  EXPECT_EQ(code(429), ErrorCode::overloaded);
  EXPECT_EQ(code(503), ErrorCode::overloaded);
  for (const int status : {100, 204, 301, 307, 400, 409, 500, 502}) EXPECT_EQ(code(status), ErrorCode::unavailable);
  EXPECT_EQ(refusal_of(fake_answer(500), "the store x").message, "the store x answers with status 500");
}

TEST(HttpRefusal, SaysWhatACodeOfS3Means) {
  const auto refusal = [](int status, std::string_view code) {
    return refusal_of(fake_answer(status), "the store x", code);
  };
  EXPECT_EQ(refusal(400, "EntityTooLarge").code, ErrorCode::storage_full);
  EXPECT_EQ(refusal(403, "QuotaExceeded").code, ErrorCode::storage_full);
  EXPECT_EQ(refusal(400, "XMinioStorageFull").code, ErrorCode::storage_full);
  EXPECT_EQ(refusal(500, "SlowDown").code, ErrorCode::overloaded);
  EXPECT_EQ(refusal(403, "SignatureDoesNotMatch").code, ErrorCode::forbidden);
  EXPECT_EQ(refusal(500, "InternalError").message, "the store x answers with status 500 (InternalError)");
}

TEST(HttpRefusal, SaysWhyThereIsNoAnswerAndWhenToAskAgain) {
  HttpAnswer answer;
  answer.why = "Connection refused";
  EXPECT_EQ(refusal_of(answer, "the store x").code, ErrorCode::unavailable);
  EXPECT_EQ(refusal_of(answer, "the store x").message, "the store x does not answer: Connection refused");
  answer.status = 503;
  answer.retry_after = seconds(7);
  EXPECT_EQ(refusal_of(answer, "the store x").retry_after, seconds(7));
}

TEST(HttpRefusal, ReadsTheCodeOfS3AndNothingThatIsNone) {
  const auto code = [](std::string_view body) { return s3_code(fake_answer(400, body)); };
  EXPECT_EQ(code("<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>m</Message></Error>"), "NoSuchKey");
  EXPECT_EQ(code("<Error><Code>two\nlines</Code></Error>"), "");
  EXPECT_EQ(code("<Error><Code>" + std::string(65, 'x') + "</Code></Error>"), "");
  EXPECT_EQ(code("<html><Code>NoSuchKey</Code></html>"), "");
  EXPECT_EQ(code("not found"), "");
  EXPECT_EQ(code(""), "");
}

}  // namespace
}  // namespace chasqui::store
