// An exchange in front of another one, for those that change some of what a handler says: everything goes to the
// exchange below, which outlives it. In the frame of the coroutine that has the handler run. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "net/exchange.h"

namespace chasqui::net {

class ForwardingExchange : public HttpExchange {
 public:
  explicit ForwardingExchange(HttpExchange& below) : below_(below) { set_params(below.params()); }

  const HttpRequest& request() const override { return below_.request(); }
  std::string take_body() override { return below_.take_body(); }
  void body_was_read() override { below_.body_was_read(); }
  void set_owner(const AnswerOwner& owner) override { below_.set_owner(owner); }
  void add_response_header(std::string_view name, std::string_view value) override {
    below_.add_response_header(name, value);
  }
  Awaitable<bool> respond(HttpResponse response) override { return below_.respond(std::move(response)); }
  Awaitable<bool> start_stream(int status, HttpHeaders headers) override {
    return below_.start_stream(status, std::move(headers));
  }
  Awaitable<bool> write_chunk(std::string_view data) override { return below_.write_chunk(data); }
  bool write_now(std::string_view data) override { return below_.write_now(data); }
  Awaitable<bool> finish_stream(std::string_view data) override { return below_.finish_stream(data); }
  void stream_failed() override { below_.stream_failed(); }
  bool response_started() const override { return below_.response_started(); }
  std::size_t unsent_bytes() const override { return below_.unsent_bytes(); }
  bool client_gone() override { return below_.client_gone(); }
  void on_client_gone(std::function<void()> callback) override { below_.on_client_gone(std::move(callback)); }

 protected:
  HttpExchange& below() { return below_; }

 private:
  HttpExchange& below_;
};

}  // namespace chasqui::net
