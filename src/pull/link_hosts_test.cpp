#include "pull/link_hosts.h"

#include <gtest/gtest.h>

namespace chasqui::pull {
namespace {

TEST(LinkHosts, NamesAHostAsItIs) {
  const auto hosts = LinkHosts::parse({"Images.Example", "cdn.example:8443", "127.0.0.1:9000", "plain.example:80"});
  ASSERT_TRUE(hosts) << hosts.error().message;
  EXPECT_EQ(hosts->reach("https", "images.example", 443), Reach::all);
  EXPECT_EQ(hosts->reach("https", "IMAGES.EXAMPLE.", 443), Reach::all);
  EXPECT_EQ(hosts->reach("https", "cdn.example", 8443), Reach::all);
  EXPECT_EQ(hosts->reach("https", "127.0.0.1", 9000), Reach::all);
  EXPECT_EQ(hosts->reach("http", "images.example", 80), Reach::all);
  EXPECT_EQ(hosts->reach("http", "images.example", 443), Reach::none);
  EXPECT_EQ(hosts->reach("http", "plain.example", 80), Reach::all);
  EXPECT_EQ(hosts->reach("https", "plain.example", 443), Reach::none);
  EXPECT_EQ(hosts->reach("https", "images.example", 8443), Reach::none);
  EXPECT_EQ(hosts->reach("https", "cdn.example", 443), Reach::none);
  EXPECT_EQ(hosts->reach("https", "other.example", 443), Reach::none);
  EXPECT_EQ(hosts->reach("https", "a.images.example", 443), Reach::none);
  EXPECT_EQ(hosts->reach("https", "images.example.evil", 443), Reach::none);
}

TEST(LinkHosts, StandsForNamesBelowADomainAtPublicAddresses) {
  const auto hosts = LinkHosts::parse({"*.example"});
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts->reach("https", "a.example", 443), Reach::public_addresses);
  EXPECT_EQ(hosts->reach("https", "a.b.example", 443), Reach::public_addresses);
  EXPECT_EQ(hosts->reach("https", "example", 443), Reach::none);
  EXPECT_EQ(hosts->reach("https", ".example", 443), Reach::none);
  EXPECT_EQ(hosts->reach("https", "evilexample", 443), Reach::none);
  EXPECT_EQ(hosts->reach("https", "a.example", 81), Reach::none);
}

TEST(LinkHosts, StandsForEveryHostAtPublicAddresses) {
  const auto hosts = LinkHosts::parse({"*", "store.internal"});
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts->reach("https", "anything.example", 443), Reach::public_addresses);
  EXPECT_EQ(hosts->reach("https", "10.0.0.1", 443), Reach::public_addresses);  // … which it is not
  EXPECT_EQ(hosts->reach("https", "store.internal", 443), Reach::all);
  EXPECT_EQ(hosts->reach("https", "anything.example", 8080), Reach::none);
}

TEST(LinkHosts, RefusesWhatNamesNoHost) {
  for (const char* wrong : {"", "https://images.example", "a/b", "a b", "*.", "*a.example", "a.*", "host:", "host:0",
                            "host:70000", "host:port", "user@host", ".example", "[::1]", "[::1]:80", "a..b."}) {
    const auto hosts = LinkHosts::parse({wrong});
    ASSERT_FALSE(hosts) << wrong;
    EXPECT_NE(hosts.error().message.find(wrong), std::string::npos) << hosts.error().message;
  }
}

TEST(LinkHosts, KnowsNoneByDefault) { EXPECT_EQ(LinkHosts().reach("https", "images.example", 443), Reach::none); }

}  // namespace
}  // namespace chasqui::pull
