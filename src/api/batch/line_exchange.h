// The exchange of a line of a batch: its request comes from a file, its answer stays in memory. What a client of a
// connection would be told is what this remembers. In the frame of the coroutine that runs the line; loop thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/exchange.h"

namespace chasqui {

class LineExchange final : public net::HttpExchange {
 public:
  LineExchange(const std::string& path, std::string body, std::string_view request_id) {
    request_.method = net::HttpMethod::post;
    request_.target = request_.path = path;
    request_.body = std::move(body);
    request_.headers.add("Content-Type", "application/json");
    request_.headers.add("X-Request-Id", request_id);
    net::HttpPeer peer;
    peer.address = "batch";
    request_.peer = std::make_shared<const net::HttpPeer>(std::move(peer));
  }
  LineExchange(const LineExchange&) = delete;
  LineExchange& operator=(const LineExchange&) = delete;

  const net::HttpRequest& request() const override { return request_; }
  std::string take_body() override { return std::exchange(request_.body, {}); }
  void add_response_header(std::string_view, std::string_view) override {}

  net::Awaitable<bool> respond(net::HttpResponse response) override {
    answer_ = std::move(response);
    answered_ = true;
    co_return !stopped_;
  }
  // Lines do not ask for streams; what comes as one is kept as its text.
  net::Awaitable<bool> start_stream(int status, net::HttpHeaders headers) override {
    answer_.status = status;
    answer_.headers = std::move(headers);
    answered_ = true;
    co_return !stopped_;
  }
  net::Awaitable<bool> write_chunk(std::string_view piece) override {
    answer_.body += piece;
    co_return !stopped_;
  }
  bool write_now(std::string_view piece) override {
    answer_.body += piece;
    return !stopped_;
  }
  net::Awaitable<bool> finish_stream(std::string_view piece) override {
    answer_.body += piece;
    co_return !stopped_;
  }
  bool response_started() const override { return answered_; }
  std::size_t unsent_bytes() const override { return 0; }
  bool client_gone() override { return stopped_; }
  void on_client_gone(std::function<void()> callback) override {
    on_stop_ = std::move(callback);
    if (stopped_) tell_stopped();
  }

  // As a client that leaves.
  void stop() {
    if (std::exchange(stopped_, true)) return;
    tell_stopped();
  }
  bool stopped() const { return stopped_; }
  bool answered() const { return answered_; }
  const net::HttpResponse& answer() const { return answer_; }
  std::string take_answer_body() { return std::move(answer_.body); }

 private:
  void tell_stopped() {
    const std::function<void()> callback = std::exchange(on_stop_, {});
    if (callback) callback();
  }

  net::HttpRequest request_;
  net::HttpResponse answer_;
  std::function<void()> on_stop_;
  bool answered_ = false;
  bool stopped_ = false;
};

}  // namespace chasqui
