// The answer to a request whose model has to be loaded first. Where the request asks for a stream, that begins while it
// waits, with comments that tell clients and proxies what it waits for; what the handler then answers goes into this
// stream, an error as an event of it. Headers that are added later are lost.
// In the frame of the coroutine that serves the route; everything goes to the exchange below, which outlives it. Loop
// thread only.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/core/dialect.h"
#include "net/exchange.h"

namespace chasqui {

class LoadingStream final : public net::HttpExchange {
 public:
  // REQUIRES: streams of the dialect are server-sent events
  LoadingStream(net::HttpExchange& below, const Dialect& dialect) : below_(below), dialect_(dialect) {
    set_params(below.params());
  }

  // Begins the stream where it has not begun. False: the client is gone. REQUIRES: the handler has not answered
  net::Awaitable<bool> comment(std::string text);

  const net::HttpRequest& request() const override { return below_.request(); }
  std::string take_body() override { return below_.take_body(); }
  void set_owner(const net::AnswerOwner& owner) override { below_.set_owner(owner); }
  void add_response_header(std::string_view name, std::string_view value) override;
  net::Awaitable<bool> respond(net::HttpResponse response) override;
  net::Awaitable<bool> start_stream(int status, net::HttpHeaders headers) override;
  net::Awaitable<bool> write_chunk(std::string_view data) override;
  bool write_now(std::string_view data) override { return below_.write_now(data); }
  net::Awaitable<bool> finish_stream(std::string_view data) override;
  bool response_started() const override { return begun_ ? answered_ : below_.response_started(); }
  std::size_t unsent_bytes() const override { return below_.unsent_bytes(); }
  bool client_gone() override { return below_.client_gone(); }
  void on_client_gone(std::function<void()> callback) override { below_.on_client_gone(std::move(callback)); }

 private:
  net::HttpExchange& below_;
  const Dialect& dialect_;
  bool begun_ = false;     // by a comment
  bool answered_ = false;  // … and the handler has gone on with it
};

}  // namespace chasqui
