// Fetches files over HTTP and HTTPS that clients of a server have named, from the hosts that its operator lets them
// name: all of one request at once, each within limits of bytes, time and redirects. Each redirect is judged as the
// first address was, and each connection by the address that it is about to be opened to, whatever the name said a
// moment before. No proxy, no cookies, no credentials. Blocks its thread until all have ended or one has failed;
// threads may fetch side by side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "pull/link_hosts.h"
#include "pull/stop_sign.h"

namespace chasqui::pull {

struct LinkTerms {
  LinkHosts hosts{};
  std::string user_agent{};
  std::string certificates{};  // file with those that are trusted; empty: as the machine has them
  StopSign stop{};
  std::size_t bytes_each = kSizeLimit<"media_bytes">;
  std::size_t bytes_all = kSizeLimit<"body_bytes">;
  Duration time_each = kTimeLimit<"media_link_seconds">;
  Duration time_all = kTimeLimit<"media_links_seconds">;
};

// What became of the addresses: all files, in their order, or why the first that failed did.
struct LinkedFiles {
  std::vector<std::string> files;
  std::size_t failed = 0;  // which
  std::string why{};       // empty: none has failed; else what goes behind the name of a field
  bool stopped = false;    // by the stop sign
};

// Whether this machine has what it takes: errors say what is missing.
Result<void> can_fetch_links();
LinkedFiles fetch_links(const std::vector<std::string>& urls, const LinkTerms& terms);

}  // namespace chasqui::pull
