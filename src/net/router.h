// Finds the handler for a method and a path. Built at start, then constant; loop thread.
//
// Patterns: "/v1/models", "/v1/models/{model}" (one segment), "/files/{rest...}" (all that is left, slashes included,
// last segment only). Segments are compared after percent-decoding, so an escaped slash stays inside its segment. A
// literal segment wins over {name}, and that over {name...}. HEAD is answered by the GET handler.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/awaitable.h"
#include "net/exchange.h"

namespace chasqui::net {

// Bind a named function or member; never a lambda that is itself a capturing coroutine.
using HttpHandler = std::function<Awaitable<void>(HttpExchange&)>;
// Gives every error of net the shape that the API's errors have.
using ErrorResponse = std::function<HttpResponse(int status, std::string_view message)>;
// Looks at a request when its head is complete and before its body is read; a response refuses it.
using HttpGate = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

class Router {
 public:
  explicit Router(ErrorResponse error);
  ~Router();

  // REQUIRES: this method and pattern are not there yet.
  void add(HttpMethod method, std::string_view pattern, HttpHandler handler);
  // Everything lives under this path, such as "/chasqui": begins with a slash and does not end with one.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  // Headers for whatever answer a request gets, judged by its head.
  void set_headers(std::function<HttpHeaders(const HttpRequest&)> headers) { headers_ = std::move(headers); }
  // Headers that say how things stand when an answer begins, appended to `out`.
  void set_answer_headers(std::function<void(const HttpRequest&, HttpHeaders& out)> headers) {
    answer_headers_ = std::move(headers);
  }
  void add_answer_headers(const HttpRequest& request, HttpHeaders& out) const {
    if (answer_headers_) answer_headers_(request, out);
  }
  // X-Request-Id on every answer: the client's where it is short and printable, else one that is made, which the
  // request gets, too. And X-Session-Id where the client sends one like that.
  void name_requests() { names_requests_ = true; }
  // The shape of 404 and 405, where it depends on the path.
  void set_refusals(std::function<HttpResponse(const HttpRequest&, int status, std::string_view message)> refusals) {
    refusals_ = std::move(refusals);
  }
  // For OPTIONS requests that have no route of their own (CORS preflights, `OPTIONS *`), on any path.
  void set_options_handler(HttpHandler handler) { options_handler_ = std::move(handler); }
  // For authentication before 32 MiB are read. Runs only for requests that have a route.
  void set_gate(HttpGate gate) { gate_ = std::move(gate); }

  // Where a request goes, judged by its head alone.
  struct Route {
    const HttpHandler* handler = nullptr;                     // belongs to the router; null when refused
    std::optional<HttpResponse> refusal;                      // 404, 405 or what the gate said
    std::vector<std::pair<std::string, std::string>> params;  // for HttpExchange::set_params
    HttpHeaders headers;                                      // for the answer
  };
  // Takes the prefix off the request's target and path, and routes it.
  Route enter(HttpRequest& request) const;
  Route route(const HttpRequest& request) const;

  HttpResponse error(int status, std::string_view message) const { return error_(status, message); }

 private:
  struct Node;

  std::optional<HttpResponse> take_prefix(HttpRequest& request) const;
  HttpResponse refuse(const HttpRequest& request, int status, std::string_view message) const;
  HttpResponse method_refusal(const HttpRequest& request, const Node& node) const;

  ErrorResponse error_;
  HttpHandler options_handler_;
  HttpGate gate_;
  std::function<HttpHeaders(const HttpRequest&)> headers_;
  std::function<void(const HttpRequest&, HttpHeaders&)> answer_headers_;
  std::function<HttpResponse(const HttpRequest&, int, std::string_view)> refusals_;
  bool names_requests_ = false;
  std::string prefix_;
  std::unique_ptr<Node> root_;
};

}  // namespace chasqui::net
