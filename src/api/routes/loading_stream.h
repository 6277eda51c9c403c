// The answer to a request whose model has to be loaded first. Where the request asks for a stream, that begins while it
// waits, with comments that tell clients and proxies what it waits for; what the handler then answers goes into this
// stream, an error as an event of it. Headers that are added later are lost. Loop thread only.
#pragma once

#include <string>
#include <string_view>

#include "api/core/dialect.h"
#include "net/forwarding_exchange.h"

namespace chasqui {

class LoadingStream final : public net::ForwardingExchange {
 public:
  // REQUIRES: streams of the dialect are server-sent events
  LoadingStream(net::HttpExchange& below, const Dialect& dialect) : ForwardingExchange(below), dialect_(dialect) {}

  // Begins the stream where it has not begun. False: the client is gone. REQUIRES: the handler has not answered
  net::Awaitable<bool> comment(std::string text);

  void add_response_header(std::string_view name, std::string_view value) override;
  net::Awaitable<bool> respond(net::HttpResponse response) override;
  net::Awaitable<bool> start_stream(int status, net::HttpHeaders headers) override;
  bool response_started() const override { return begun_ ? answered_ : ForwardingExchange::response_started(); }

 private:
  const Dialect& dialect_;
  bool begun_ = false;     // by a comment
  bool answered_ = false;  // … and the handler has gone on with it
};

}  // namespace chasqui
