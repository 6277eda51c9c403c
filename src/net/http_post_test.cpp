#include "net/http_post.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

TEST(HttpUrl, HasHostPortAndPath) {
  const auto whole = read_http_url("http://collector:4318/a/b");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->host, "collector");
  EXPECT_EQ(whole->port, 4318);
  EXPECT_EQ(whole->path, "/a/b");
  const auto bare = read_http_url("http://127.0.0.1");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->port, 80);
  EXPECT_EQ(bare->path, "/");
  const auto v6 = read_http_url("http://[::1]:9/");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 9);
  EXPECT_FALSE(v6->tls);
  const auto tls = read_http_url("https://collector/a");
  ASSERT_TRUE(tls);
  EXPECT_TRUE(tls->tls);
  EXPECT_EQ(tls->host, "collector");
  EXPECT_EQ(tls->port, 443);
}

TEST(HttpUrl, RefusesWhatItCannotCall) {
  for (const char* bad :
       {"", "collector:4318", "ftp://collector", "https://", "http://:80", "http://a:0", "http://a:x", "http://a:70000",
        "http://[::1", "http://[::1]x", "http://a b/", "http://user@a/", "http://a/?q=1", "http://a/\r\nHost: b"}) {
    EXPECT_FALSE(read_http_url(bad)) << bad;
  }
}

}  // namespace
}  // namespace chasqui::net
