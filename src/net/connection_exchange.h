// The HttpExchange of a real connection: builds heads, chunks bodies, decides whether the connection can be used
// again. Lives in the frame of the connection's coroutine for one request; loop thread only.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "net/exchange.h"
#include "net/http_connection.h"
#include "net/router.h"

namespace chasqui::net {

class ConnectionExchange final : public HttpExchange {
 public:
  explicit ConnectionExchange(HttpConnection& connection);
  ~ConnectionExchange() override;
  ConnectionExchange(const ConnectionExchange&) = delete;
  ConnectionExchange& operator=(const ConnectionExchange&) = delete;

  const HttpRequest& request() const override { return request_; }
  std::string take_body() override { return std::exchange(request_.body, {}); }
  void body_was_read() override;
  void set_owner(const AnswerOwner& owner) override { owner_ = owner; }
  void add_response_header(std::string_view name, std::string_view value) override;
  Awaitable<bool> respond(HttpResponse response) override;
  Awaitable<bool> start_stream(int status, HttpHeaders headers) override;
  Awaitable<bool> write_chunk(std::string_view data) override;
  bool write_now(std::string_view data) override;
  Awaitable<bool> finish_stream(std::string_view data) override;
  bool response_started() const override { return stage_ != Stage::open; }
  std::size_t unsent_bytes() const override { return std::max(connection_.unsent_bytes(), rest_.size()); }
  bool client_gone() override;
  void on_client_gone(std::function<void()> callback) override;

  // For the connection, while it reads.
  HttpRequest& incoming() { return request_; }
  // After the body grew: where all of them together are too large, the costliest on its way is refused, or this one.
  void account_body();
  void refuse_body(std::string_view why);  // for want of memory; what came of it is freed
  void refuse(HttpResponse response) { refusal_ = std::move(response); }
  bool refused() const { return refusal_.has_value(); }
  HttpResponse take_refusal() { return std::move(*refusal_); }
  void take_route(Router::Route route);
  const HttpHandler& handler() const { return *handler_; }
  void close_after() { close_after_ = true; }

  bool complete() const { return stage_ == Stage::done; }
  bool can_continue() const { return complete() && !close_after_; }

 private:
  enum class Stage { open, streaming, done };

  class Room;

  bool wants_gzip() const;
  Awaitable<void> compress(HttpResponse& response);

  std::string head(int status, const HttpHeaders& headers);
  void append_connection(std::string& out) const;
  std::string_view size_line(std::size_t size);
  Awaitable<bool> send_rest();

  HttpConnection& connection_;
  HttpRequest request_;
  HttpHeaders extra_;  // add_response_header()
  std::string rest_;   // of what write_now() was given
  std::optional<HttpResponse> refusal_;
  const HttpHandler* handler_ = nullptr;
  std::size_t accounted_ = 0;
  AnswerOwner owner_;
  Stage stage_ = Stage::open;
  bool close_after_ = false;
  bool chunked_ = false;
  bool silent_ = false;  // HEAD, 204, 304: no body leaves
  std::array<char, 20> size_line_;
};

}  // namespace chasqui::net
