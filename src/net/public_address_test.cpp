#include "net/public_address.h"

#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace chasqui::net {
namespace {

bool is_public(const std::string& text) {
  sockaddr_storage address{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    std::memcpy(&address, &v4, sizeof v4);
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1) << text;
    std::memcpy(&address, &v6, sizeof v6);
  }
  return is_public_address(reinterpret_cast<const sockaddr*>(&address));
}

TEST(PublicAddress, IsOneOfTheInternet) {
  for (const char* out :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.0.1", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.0.1", "198.17.255.255", "198.20.0.0",
        "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860::8888", "3fff:ffff::1"}) {
    EXPECT_TRUE(is_public(out)) << out;
  }
}

TEST(PublicAddress, IsNoneOfThisMachineOrItsNetwork) {
  for (const char* near : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.0.1",
                           "168.63.129.16", "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.8",
                           "192.0.2.1",
                           "192.168.0.1",
                           "192.168.255.255",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.7",
                           "203.0.113.7",
                           "224.0.0.1",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fd12::1",
                           "ff02::1",
                           "2001:db8::1",
                           "3fff:fff::1",
                           "2001::1",
                           "100::1"}) {
    EXPECT_FALSE(is_public(near)) << near;
  }
}

TEST(PublicAddress, IsThatOfTheIpv4WhichAnIpv6AddressStandsFor) {
  EXPECT_TRUE(is_public("::ffff:1.1.1.1"));
  EXPECT_FALSE(is_public("::ffff:127.0.0.1"));
  EXPECT_FALSE(is_public("::ffff:169.254.169.254"));
  EXPECT_FALSE(is_public("::127.0.0.1"));
  EXPECT_TRUE(is_public("64:ff9b::101:101"));
  EXPECT_FALSE(is_public("64:ff9b::a00:1"));
  EXPECT_TRUE(is_public("2002:101:101::1"));
  EXPECT_FALSE(is_public("2002:c0a8:1::1"));
}

TEST(PublicAddress, IsNoPath) {
  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  EXPECT_FALSE(is_public_address(reinterpret_cast<const sockaddr*>(&path)));
}

}  // namespace
}  // namespace chasqui::net
