// Whether an address is one of the internet at large, and not of this machine, of the network around it, or of nothing:
// what a server must not be made to connect to by an address that a client has written. Pure; any thread.
#pragma once

struct sockaddr;

namespace chasqui::net {

// IPv4, and IPv6 with the IPv4 that some of its addresses stand for; false for any other kind. By IANA's registries of
// special-purpose addresses.
bool is_public_address(const sockaddr* address);

}  // namespace chasqui::net
