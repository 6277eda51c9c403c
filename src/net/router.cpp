#include "net/router.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/random_id.h"

namespace chasqui::net {

struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> capture;
  std::unique_ptr<Node> rest;
  std::string name;  // of the capture that leads here
  std::map<HttpMethod, HttpHandler> handlers;
};

namespace {

constexpr std::string_view kEndsInRest = "...}";

// "/a/b" → a, b. REQUIRES: starts with a slash.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);
    segments.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(segments.back().size());
  }
  return segments;
}

HttpMethod handler_method(HttpMethod method) { return method == HttpMethod::head ? HttpMethod::get : method; }

// Decoded; nothing for `*` and for escapes that cannot be decoded.
std::optional<std::vector<std::string>> decoded_segments(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  std::vector<std::string> segments;
  for (const std::string_view segment : split_path(path)) {
    auto decoded = percent_decode(segment);
    if (!decoded) return std::nullopt;
    segments.push_back(std::move(*decoded));
  }
  return segments;
}

// Depth first, literal before capture before rest, so the most specific route that fits wins. Depth and branching
// are those of our own table, not of the request.
class RouteSearch {
 public:
  explicit RouteSearch(std::vector<std::string> segments) : segments_(std::move(segments)) {}

  template <class Node>
  const Node* find(const Node& node, std::size_t at) {
    if (at == segments_.size()) return node.handlers.empty() ? nullptr : &node;
    if (const auto literal = node.literals.find(segments_[at]); literal != node.literals.end()) {
      if (const Node* found = find(*literal->second, at + 1)) return found;
    }
    if (node.capture && !segments_[at].empty()) {
      params_.emplace_back(node.capture->name, segments_[at]);
      if (const Node* found = find(*node.capture, at + 1)) return found;
      params_.pop_back();
    }
    if (!node.rest) return nullptr;
    std::string all;
    for (std::size_t i = at; i < segments_.size(); ++i) all += (i > at ? "/" : "") + segments_[i];
    params_.emplace_back(node.rest->name, std::move(all));
    return node.rest.get();
  }

  std::vector<std::pair<std::string, std::string>> take_params() { return std::move(params_); }

 private:
  std::vector<std::string> segments_;
  std::vector<std::pair<std::string, std::string>> params_;
};

constexpr std::string_view kRequestId = "X-Request-Id";
constexpr std::string_view kSessionId = "X-Session-Id";

// What may go into a header and a log as it stands.
bool has_good_id(const HttpRequest& request, std::string_view header) {
  const auto id = request.header(header);
  return id && !id->empty() && id->size() <= kSizeLimit<"request_id_bytes"> &&
         std::ranges::all_of(*id, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

Router::Router(ErrorResponse error) : error_(std::move(error)), root_(std::make_unique<Node>()) {}
Router::~Router() = default;

void Router::add(HttpMethod method, std::string_view pattern, HttpHandler handler) {
  CHECK(pattern.starts_with('/'), "a route's pattern starts with a slash");
  Node* node = root_.get();
  bool ended = false;
  for (const std::string_view segment : split_path(pattern)) {
    CHECK(!ended, "nothing can follow {name...}");
    std::unique_ptr<Node>* next = nullptr;
    std::string name;
    if (segment.starts_with('{') && segment.ends_with(kEndsInRest)) {
      ended = true;
      next = &node->rest;
      name = segment.substr(1, segment.size() - 1 - kEndsInRest.size());
    } else if (segment.starts_with('{') && segment.ends_with('}')) {
      next = &node->capture;
      name = segment.substr(1, segment.size() - 2);
    } else {
      next = &node->literals[std::string(segment)];
    }
    if (!*next) {
      *next = std::make_unique<Node>();
      (*next)->name = name;
    }
    node = next->get();
    CHECK(node->name == name, "routes that share a place must give it one name");
  }
  const bool fresh = node->handlers.emplace(method, std::move(handler)).second;
  CHECK(fresh, "a route was added twice");
}

// A refusal, or a redirect, where the target is not below the prefix.
std::optional<HttpResponse> Router::take_prefix(HttpRequest& request) const {
  if (prefix_.empty() || request.path == "*") return std::nullopt;
  const std::string_view path = request.raw_path();
  if (!path.starts_with(prefix_)) return error_(404, "There is nothing at this path.");
  if (path.size() == prefix_.size()) {
    HttpResponse redirect(308);  // or the page's relative addresses would lead out of it
    redirect.headers.add("Location", prefix_ + "/");
    return redirect;
  }
  if (path[prefix_.size()] != '/') return error_(404, "There is nothing at this path.");
  request.target.erase(0, prefix_.size());
  request.path = percent_decode(request.raw_path()).value_or("/");  // the parser has refused what cannot be decoded
  return std::nullopt;
}

Router::Route Router::enter(HttpRequest& request) const {
  Route out;
  out.refusal = take_prefix(request);
  if (!out.refusal) out = route(request);
  if (headers_) out.headers = headers_(request);
  if (names_requests_) {
    if (!has_good_id(request, kRequestId)) request.headers.set(kRequestId, random_id("req_"));
    out.headers.add(kRequestId, *request.header(kRequestId));
    if (has_good_id(request, kSessionId)) out.headers.add(kSessionId, *request.header(kSessionId));
  }
  return out;
}

Router::Route Router::route(const HttpRequest& request) const {
  Route route;
  const auto segments = decoded_segments(request.raw_path());
  RouteSearch search(segments.value_or(std::vector<std::string>()));
  const Node* node = segments ? search.find(*root_, 0) : nullptr;
  if (node != nullptr) {
    const auto found = node->handlers.find(handler_method(request.method));
    if (found != node->handlers.end()) {
      route.refusal = gate_ ? gate_(request) : std::nullopt;
      if (!route.refusal) route.handler = &found->second;
      route.params = search.take_params();
      return route;
    }
  }
  if (request.method == HttpMethod::options && options_handler_) {
    if (request.announces_body()) {  // it asks for no key, so it may not fill memory
      route.refusal = refuse(request, 413, "OPTIONS takes no body.");
    } else {
      route.handler = &options_handler_;
    }
  } else {
    route.refusal =
        node != nullptr ? method_refusal(request, *node) : refuse(request, 404, "There is nothing at this path.");
  }
  return route;
}

HttpResponse Router::refuse(const HttpRequest& request, int status, std::string_view message) const {
  return refusals_ ? refusals_(request, status, message) : error_(status, message);
}

HttpResponse Router::method_refusal(const HttpRequest& request, const Node& node) const {
  std::string allow;
  for (const auto& [method, handler] : node.handlers) {
    if (!allow.empty()) allow += ", ";
    allow += name(method);
    if (method == HttpMethod::get) allow += ", HEAD";
  }
  HttpResponse response = refuse(request, 405, "This path does not have this method.");
  response.headers.set("Allow", allow);
  return response;
}

}  // namespace chasqui::net
