#include "bench/target.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

TEST(Target, ReadsAddresses) {
  const auto plain = parse_target("http://localhost:8080");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->host, "localhost");
  EXPECT_EQ(plain->port, 8080);
  EXPECT_EQ(plain->base, "");
  EXPECT_EQ(plain->host_header, "localhost:8080");
  EXPECT_EQ(parse_target("http://a")->port, 80);
  EXPECT_EQ(parse_target("http://a/x/")->base, "/x");
  EXPECT_EQ(parse_target("http://a:1/v1")->base, "");
  EXPECT_EQ(parse_target("http://[::1]:9")->host, "::1");
  EXPECT_EQ(parse_target("http://[::1]:9")->port, 9);
  EXPECT_EQ(parse_target("unix:/tmp/x.sock")->socket_path, "/tmp/x.sock");
}

TEST(Target, RefusesOthers) {
  for (const std::string_view url : {"", "localhost:80", "https://a", "http://", "http://:80", "http://a:0",
                                     "http://a:x", "http://a:70000", "http://[::1", "unix:"}) {
    EXPECT_FALSE(parse_target(url).has_value()) << url;
  }
}

}  // namespace
}  // namespace chasqui::bench
