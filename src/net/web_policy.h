// What web pages may do with this server: which names it answers to (DNS rebinding), which pages may send requests, and
// what browsers are told (CORS). Browsers send `Host` and `Origin` and let no page change them; other clients send
// whatever they like, so this is no protection against them. A plain value, constant after start; pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_headers.h"
#include "net/http_request.h"

namespace chasqui::net {

struct WebPolicy {
  // The server has no keys: being able to reach it is being allowed to use it, so pages are judged here.
  bool keyless = false;
  // … and only this machine can reach it: it answers to names of this machine alone, and to `hosts`.
  bool checks_host = false;
  bool for_operators = false;      // of the admin listener: no flag lets pages of other origins in, and clients on this
                                   // machine name it by a name of this machine, or of `hosts`
  std::vector<std::string> hosts;  // in lower case, without a port

  bool any_origin = false;           // "*"
  bool loopback_origins = true;      // "localhost": pages of this machine, from any port
  std::vector<std::string> origins;  // in lower case: "https://chat.example"
  std::string methods = "GET, POST, DELETE, OPTIONS";
  std::string headers = "*";  // "*": those that the page asks for
  bool credentials = true;
};

struct WebRefusal {
  int status;
  std::string message;
};

// "*", "localhost", "null", or a scheme with an authority and nothing behind it.
bool is_origin_rule(std::string_view text);
// Puts such a rule into `policy`. REQUIRES: is_origin_rule(rule)
void allow_origin(WebPolicy& policy, std::string_view rule);

// localhost, *.localhost, 127.0.0.0/8, [::1]; with or without a port.
bool is_loopback_authority(std::string_view authority);

// Judged by the head alone; nothing: it may pass.
//   421  a name that is not this server's
//   403  a page that may not send requests
//   415  a page that sends a body which is not declared as JSON: pages need no permission of ours for other types
std::optional<WebRefusal> judge(const WebPolicy& policy, const HttpRequest& request);

// What goes on every answer to this request; empty for requests that are not a page's, or a page's of this server.
HttpHeaders cors_headers(const WebPolicy& policy, const HttpRequest& request);
// … and on the answer to its preflight, beside those.
HttpHeaders preflight_headers(const WebPolicy& policy, const HttpRequest& request);

}  // namespace chasqui::net
