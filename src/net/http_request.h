// One request as it came in, checked and decoded. Built by HttpParser, owned by the exchange, constant for handlers.
// Loop thread, but a plain value: a handler may copy what it needs to elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_headers.h"

namespace chasqui::net {

enum class HttpMethod { get, head, post, put, patch, del, options };

std::string_view name(HttpMethod method);                            // "GET"
std::optional<HttpMethod> parse_http_method(std::string_view text);  // case-sensitive; nothing for other methods

// Who is at the other end of a connection.
struct HttpPeer {
  std::string address;  // "192.0.2.1:4711", "[2001:db8::1]:4711", "unix"
  bool is_unix = false;
  bool is_loopback = false;  // Unix sockets count as loopback
  // From the kernel, for Unix sockets only.
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::int32_t> pid;
};

struct HttpRequest {
  HttpMethod method = HttpMethod::get;
  std::string target;  // as sent: "/v1/models/a%2Fb?x=1"
  std::string path;    // percent-decoded, without the query: "/v1/models/a/b"
  HttpHeaders headers;
  std::string body;
  int version_minor = 1;   // HTTP/1.0 or HTTP/1.1
  bool keep_alive = true;  // the client allows another request on this connection
  std::shared_ptr<const HttpPeer> peer;

  // The target without its query, not decoded; and the query without its question mark, not decoded.
  std::string_view raw_path() const;
  std::string_view raw_query() const;
  // The decoded value of the first query parameter of this name; empty text for `?name` without a value.
  std::optional<std::string> query(std::string_view name) const;

  std::optional<std::string_view> header(std::string_view name) const { return headers.get(name); }
  bool announces_body() const;  // its head does; an empty one that is chunked counts
};

// Host and port as a Host header has them: a name, an address, or nothing; no user.
bool is_authority(std::string_view text);

// %41 → A. Nothing when an escape is incomplete, not hexadecimal, or a NUL.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace chasqui::net
