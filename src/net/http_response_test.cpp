#include "net/http_response.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

TEST(HttpResponse, WritesItsHead) {
  std::string out;
  append_status_line(out, 429);
  append_headers(out, HttpHeaders{{"Retry-After", "3"}, {"X", "y"}});
  EXPECT_EQ(out, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nX: y\r\n");
}

TEST(HttpResponse, NamesUnknownStatusesToo) {
  std::string out;
  append_status_line(out, 299);
  EXPECT_EQ(out, "HTTP/1.1 299 Unknown\r\n");
}

TEST(HttpResponse, KnowsWhichStatusesHaveNoBody) {
  EXPECT_TRUE(status_has_body(200));
  EXPECT_TRUE(status_has_body(404));
  EXPECT_FALSE(status_has_body(204));
  EXPECT_FALSE(status_has_body(304));
  EXPECT_FALSE(status_has_body(100));
}

TEST(HttpResponse, WritesDates) { EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT"); }

}  // namespace
}  // namespace chasqui::net
