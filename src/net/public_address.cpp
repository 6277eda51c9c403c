#include "net/public_address.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include <netinet/in.h>
#include <sys/socket.h>

namespace chasqui::net {
namespace {

struct Range {
  std::uint32_t first;
  int bits;
};

// https://www.iana.org/assignments/iana-ipv4-special-registry, and multicast and what is reserved above it.
constexpr Range kSpecial[] = {
    {0x00000000, 8},   // this network
    {0x0a000000, 8},   // private
    {0x64400000, 10},  // shared by carriers
    {0x7f000000, 8},   // loopback
    {0xa83f8110, 32},  // what a cloud (Azure) tells a machine alone
    {0xa9fe0000, 16},  // of the link; also where clouds keep what they tell a machine alone
    {0xac100000, 12},  // private
    {0xc0000000, 24},  // of protocols
    {0xc0000200, 24},  // of documents
    {0xc0586300, 24},  // once of relays to IPv6
    {0xc0a80000, 16},  // private
    {0xc6120000, 15},  // of benchmarks
    {0xc6336400, 24},  // of documents
    {0xcb007100, 24},  // of documents
    {0xe0000000, 4},   // multicast
    {0xf0000000, 4},   // reserved, and broadcast
};

bool is_public_v4(std::uint32_t address) {
  return std::ranges::none_of(kSpecial,
                              [address](Range range) { return (address ^ range.first) >> (32 - range.bits) == 0; });
}

std::uint32_t v4_in(std::span<const std::uint8_t> bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

bool begins(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> with) {
  return std::equal(with.begin(), with.end(), bytes.begin());
}

bool is_public_v6(std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr std::uint8_t kTranslated[12] = {0x00, 0x64, 0xff, 0x9b};
  constexpr std::uint8_t kRelayed[2] = {0x20, 0x02};
  constexpr std::uint8_t kDocuments[4] = {0x20, 0x01, 0x0d, 0xb8};
  if (begins(bytes, kMapped) || begins(bytes, kTranslated)) return is_public_v4(v4_in(bytes.subspan(12)));
  if (begins(bytes, kRelayed)) return is_public_v4(v4_in(bytes.subspan(2)));
  const bool of_more_documents = bytes[0] == 0x3f && bytes[1] == 0xff && bytes[2] < 0x10;
  if (begins(bytes, kDocuments) || of_more_documents) return false;
  // 2001::/23, of protocols such as Teredo, has nothing that serves files.
  const bool of_protocols = bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] < 2;
  return (bytes[0] & 0xe0) == 0x20 && !of_protocols;  // 2000::/3 is all that was given out
}

}  // namespace

bool is_public_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return is_public_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  return is_public_v6(v6.sin6_addr.s6_addr);
}

}  // namespace chasqui::net
