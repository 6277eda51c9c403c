#include "net/web_policy.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/ascii.h"

namespace chasqui::net {
namespace {

constexpr std::string_view kExposed =
    "X-Request-Id, X-Session-Id, X-Conversation-Id, Retry-After, Retry-After-Ms, Server-Timing, Content-Disposition, "
    "X-Chasqui-Warning";
constexpr std::string_view kPreflightSeconds = "600";  // longer is more than browsers keep

// "name:80" → "name", "[::1]:80" → "[::1]".
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

struct Origin {
  std::string_view scheme;
  std::string_view authority;
};

std::optional<Origin> parse_origin(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const Origin origin{text.substr(0, end), text.substr(end + 3)};
  const bool plain = std::ranges::all_of(origin.scheme, [](char c) { return is_ascii_word_or("+-.", c); });
  if (!plain || origin.authority.empty() || !is_authority(origin.authority)) return std::nullopt;
  return origin;
}

// Browsers leave a scheme's own port out, others may not.
std::string without_port(std::string_view authority, std::string_view port) {
  if (authority.ends_with(port)) authority.remove_suffix(port.size());
  return in_small_letters(authority);
}

// The page comes from this server. The scheme does not count: a proxy may speak TLS for us.
bool is_same_origin(std::string_view origin, const HttpRequest& request) {
  const auto parts = parse_origin(origin);
  const auto host = request.header("Host");
  if (!parts || !host) return false;
  const bool https = equals_ignoring_case(parts->scheme, "https");
  if (!https && !equals_ignoring_case(parts->scheme, "http")) return false;
  const std::string_view port = https ? ":443" : ":80";
  return without_port(parts->authority, port) == without_port(*host, port);
}

bool is_allowed(const WebPolicy& policy, std::string_view origin) {
  if (policy.any_origin) return true;
  if (std::ranges::find(policy.origins, in_small_letters(origin)) != policy.origins.end()) return true;
  const auto parts = parse_origin(origin);
  if (!policy.loopback_origins || !parts || !is_loopback_authority(parts->authority)) return false;
  return equals_ignoring_case(parts->scheme, "http") || equals_ignoring_case(parts->scheme, "https");
}

bool is_json(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  const std::string known = in_small_letters(type);
  return known == "application/json" || (known.starts_with("application/") && known.ends_with("+json"));
}

bool changes_state(HttpMethod method) {
  return method != HttpMethod::get && method != HttpMethod::head && method != HttpMethod::options;
}

std::optional<WebRefusal> judge_host(const WebPolicy& policy, const HttpRequest& request) {
  const auto host = request.header("Host");
  // A client on another machine names the node as it is called there, and may do less.
  const bool checks = policy.for_operators ? request.peer && request.peer->is_loopback : policy.checks_host;
  // Browsers always name a host; HTTP/1.0 clients and some probes do not.
  if (!checks || !host || host->empty() || is_loopback_authority(*host)) return std::nullopt;
  if (std::ranges::find(policy.hosts, in_small_letters(host_of(*host))) != policy.hosts.end()) return std::nullopt;
  if (policy.for_operators) {
    return WebRefusal{421,
                      "Host: the admin listener on this machine answers to localhost, *.localhost, 127.0.0.0/8 and "
                      "[::1]; name others with --allowed-hosts."};
  }
  return WebRefusal{421,
                    "Host: a server without keys on this machine answers to localhost, *.localhost, 127.0.0.0/8 and "
                    "[::1]; name others with --allowed-hosts, or set --api-key."};
}

std::optional<WebRefusal> judge_origin(const WebPolicy& policy, const HttpRequest& request, std::string_view origin) {
  if (is_same_origin(origin, request) || is_allowed(policy, origin)) return std::nullopt;
  if (policy.for_operators) return WebRefusal{403, "Origin: web pages may not use the admin listener."};
  return WebRefusal{403,
                    "Origin: pages of this origin may not use this server, which has no keys; allow it with "
                    "--cors-origins."};
}

// What a page of another site shows as a picture, a script or a frame: it cannot read it, but asking costs, and could
// load a model. Following a link to this server is no such thing.
std::optional<WebRefusal> judge_embedding(const WebPolicy& policy, const HttpRequest& request) {
  if (policy.any_origin || request.header("Sec-Fetch-Dest").value_or("document") == "document") return std::nullopt;
  return WebRefusal{403,
                    "Sec-Fetch-Site: pages of other sites may not embed what this server, which has no keys, answers."};
}

}  // namespace

bool is_origin_rule(std::string_view text) {
  return text == "*" || text == "localhost" || text == "null" || parse_origin(text).has_value();
}

void allow_origin(WebPolicy& policy, std::string_view rule) {
  if (rule == "*") {
    policy.any_origin = true;
  } else if (rule == "localhost") {
    policy.loopback_origins = true;
  } else {
    policy.origins.push_back(in_small_letters(rule));
  }
}

bool is_loopback_authority(std::string_view authority) {
  const std::string host = in_small_letters(host_of(authority));
  if (host == "localhost" || host.ends_with(".localhost") || host == "[::1]") return true;
  in_addr v4{};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

std::optional<WebRefusal> judge(const WebPolicy& policy, const HttpRequest& request) {
  if (!policy.keyless || (request.peer && request.peer->is_unix)) return std::nullopt;
  if (auto refusal = judge_host(policy, request)) return refusal;
  const auto origin = request.header("Origin");
  if (origin) {
    if (auto refusal = judge_origin(policy, request, *origin)) return refusal;
  }
  const auto site = request.header("Sec-Fetch-Site");
  const bool cross_site = site && equals_ignoring_case(*site, "cross-site");
  if (!origin && !cross_site) return std::nullopt;
  if (!changes_state(request.method)) return origin ? std::nullopt : judge_embedding(policy, request);
  // Without an origin this page is allowed nothing, so not even an empty body passes.
  if ((request.announces_body() || !origin) && !is_json(request.header("Content-Type").value_or(""))) {
    return WebRefusal{415, "Content-Type: a request of a web page must be application/json."};
  }
  return std::nullopt;
}

HttpHeaders cors_headers(const WebPolicy& policy, const HttpRequest& request) {
  HttpHeaders out;
  const auto origin = request.header("Origin");
  if (!origin || !is_allowed(policy, *origin)) return out;
  // Never "*": where credentials are allowed browsers want the origin itself, and it is right without them, too.
  out.add("Access-Control-Allow-Origin", *origin);
  out.add("Vary", "Origin");
  if (policy.credentials) out.add("Access-Control-Allow-Credentials", "true");
  out.add("Access-Control-Expose-Headers", kExposed);
  return out;
}

HttpHeaders preflight_headers(const WebPolicy& policy, const HttpRequest& request) {
  HttpHeaders out;
  const auto origin = request.header("Origin");
  if (!origin || !is_allowed(policy, *origin)) return out;
  out.add("Access-Control-Allow-Methods", policy.methods);
  const auto asked = request.header("Access-Control-Request-Headers");
  if (policy.headers != "*") {
    out.add("Access-Control-Allow-Headers", policy.headers);
  } else if (asked) {
    out.add("Access-Control-Allow-Headers", *asked);  // "*" would not allow Authorization
  }
  out.add("Access-Control-Max-Age", kPreflightSeconds);
  // A page of the internet asks a server of the local network, or of this machine.
  if (request.headers.has("Access-Control-Request-Private-Network")) {
    out.add("Access-Control-Allow-Private-Network", "true");
  }
  return out;
}

}  // namespace chasqui::net
