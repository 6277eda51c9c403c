#include "net/http_headers.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

TEST(HttpHeaders, FindsWithoutRegardToCase) {
  const HttpHeaders headers{{"Content-Type", "text/plain"}, {"A", "1"}, {"a", "2"}};
  EXPECT_EQ(headers.get("content-type"), "text/plain");
  EXPECT_EQ(headers.get("A"), "1");
  EXPECT_EQ(headers.count("a"), 2u);
  EXPECT_FALSE(headers.has("Content"));
}

TEST(HttpHeaders, SetReplacesAll) {
  HttpHeaders headers{{"A", "1"}, {"B", "2"}, {"a", "3"}};
  headers.set("A", *headers.get("B"));
  EXPECT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers.get("A"), "2");
}

TEST(HttpHeaders, ValuesCannotSplitTheMessage) {
  const HttpHeaders headers{{"A", "1\r\nB: 2"}};
  EXPECT_EQ(headers.get("A"), "1  B: 2");
}

TEST(HttpHeaders, SurvivesAMove) {
  HttpHeaders headers{{"A", "1"}};
  const HttpHeaders moved = std::move(headers);
  EXPECT_EQ(moved.get("a"), "1");
}

}  // namespace
}  // namespace chasqui::net
