// The hosts from which a server fetches what its clients name (--media-url-hosts): `images.example`, `*.example` for
// all names below it, `*` for every host; `images.example:8443` for a port that is not the scheme's own. A host that is
// named as it is may be anywhere; the other forms stand for public addresses alone, since names below a domain, and
// all the more any name, may be made to point into the operator's own network. Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui::pull {

// Which addresses a connection may be opened to.
enum class Reach { none, public_addresses, all };

class LinkHosts {
 public:
  // Errors say what is wrong with which of them.
  static Result<LinkHosts> parse(const std::vector<std::string>& list);

  // `host` as libcurl takes it out of an address.
  Reach reach(std::string_view scheme, std::string_view host, std::uint16_t port) const;

 private:
  struct Host {
    std::string name;        // in small letters; of `*.example` ".example", of `*` nothing
    std::uint16_t port = 0;  // 0: that of the scheme
    bool exact = false;
  };

  std::vector<Host> hosts_;
};

}  // namespace chasqui::pull
