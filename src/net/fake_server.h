// A real server with handlers that say in a mailbox what happens to them, for tests. The test runs loop() in a thread
// of its own and talks to the port from another.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/mailbox.h"
#include "net/event_signal.h"
#include "net/http_server.h"
#include "net/sse.h"

namespace chasqui::net {

inline HttpResponse plain_error(int status, std::string_view message) {
  return HttpResponse(status, "text/plain", std::string(message));
}

class FakeServer {
 public:
  explicit FakeServer(HttpLimits limits = {})
      : loop_(metrics_), router_(plain_error), server_(loop_, router_, limits), go_(loop_) {
    route(HttpMethod::get, "/health", &FakeServer::health);
    route(HttpMethod::post, "/echo", &FakeServer::echo);
    route(HttpMethod::get, "/wait", &FakeServer::wait);
    route(HttpMethod::get, "/stream/{count}", &FakeServer::stream);
    route(HttpMethod::get, "/flood", &FakeServer::flood);
    route(HttpMethod::get, "/hasty", &FakeServer::hasty);
    route(HttpMethod::post, "/read", &FakeServer::read);
    route(HttpMethod::get, "/throw", &FakeServer::throw_up);
    route(HttpMethod::get, "/nothing", &FakeServer::nothing);
    route(HttpMethod::get, "/broken", &FakeServer::broken);
    route(HttpMethod::get, "/peer", &FakeServer::peer);
    server_.set_default_headers(HttpHeaders{{"Server", "test"}});
    port_ = server_.listen(ListenAddress::tcp("127.0.0.1", 0))->port;
  }

  EventLoop& loop() { return loop_; }
  Router& router() { return router_; }
  HttpServer& server() { return server_; }
  const NetMetrics& metrics() const { return metrics_; }
  std::uint16_t port() const { return port_; }

  // Lets one waiting handler go on. Any thread.
  void go() {
    loop_.post([this] { go_.notify(); });
  }
  // What happened next, in the order of the loop. Any one thread.
  std::string next_event() {
    while (read_ == events_.size()) {
      read_ = 0;
      happened_.drain(events_, Wait::yes);
    }
    return events_[read_++];
  }
  void report(std::string event) { happened_.push(std::move(event)); }
  // Runs `function` on the loop and waits for it. The only event must be its own.
  void on_loop(const std::function<void()>& function) {
    loop_.post([this, &function] {
      function();
      report("ran");
    });
    while (next_event() != "ran") {
    }
  }

  // What /hasty says.
  static std::string line(int number) {
    std::string text = std::to_string(number) + ' ';
    text.resize(1000, 'x');
    return text + '\n';
  }

 private:
  using Member = Awaitable<void> (FakeServer::*)(HttpExchange&);

  void route(HttpMethod method, std::string_view pattern, Member member) {
    router_.add(method, pattern, [this, member](HttpExchange& exchange) { return (this->*member)(exchange); });
  }

  Awaitable<void> health(HttpExchange& exchange) {
    exchange.add_response_header("X-Request-Id", "r1");
    co_await exchange.respond(HttpResponse(200, "text/plain", "ok"));
  }
  Awaitable<void> echo(HttpExchange& exchange) {
    co_await exchange.respond(HttpResponse(200, "text/plain", exchange.request().body));
  }
  Awaitable<void> read(HttpExchange& exchange) {
    exchange.take_body();
    exchange.body_was_read();
    report("read");
    co_await go_.wait();
    co_await exchange.respond(HttpResponse(200, "text/plain", "read"));
  }
  Awaitable<void> wait(HttpExchange& exchange) {
    exchange.on_client_gone([this] {
      report("gone");
      go_.notify();
    });
    report("waiting");
    co_await go_.wait();
    const bool sent = co_await exchange.respond(HttpResponse(200, "text/plain", "waited"));
    report(sent ? "sent" : "not sent");
  }
  Awaitable<void> stream(HttpExchange& exchange) {
    exchange.on_client_gone([this] {
      report("gone");
      go_.notify();
    });
    const int count = std::stoi(exchange.param("count"));
    co_await exchange.start_stream(200, sse_headers());
    std::string event;
    for (int i = 0; i < count && !exchange.client_gone(); ++i) {
      co_await go_.wait();
      event.clear();
      append_sse_data_line(event, std::to_string(i));
      co_await exchange.write_chunk(event);
    }
    const bool sent = co_await exchange.finish_stream("data: [DONE]\n\n");
    report(sent ? "sent" : "not sent");
  }
  Awaitable<void> flood(HttpExchange& exchange) {
    exchange.on_client_gone([this, &exchange] { report(exchange.unsent_bytes() > 0 ? "gone, unsent" : "gone"); });
    bool open = co_await exchange.start_stream(200, HttpHeaders());
    const std::string block(64 * 1024, 'x');
    while (open) open = co_await exchange.write_chunk(block);
    report("flood over");
  }
  // Numbered lines without waiting, until the kernel takes no more; then two of which one waits.
  Awaitable<void> hasty(HttpExchange& exchange) {
    co_await exchange.start_stream(200, HttpHeaders());
    int lines = 0;
    std::string text = line(lines++);
    while (exchange.write_now(text)) text = line(lines++);
    report(exchange.client_gone() ? "gone" : "full");
    co_await go_.wait();
    text = line(lines++);
    co_await exchange.write_chunk(text);
    exchange.write_now(line(lines++));
    const bool sent = co_await exchange.finish_stream("end");
    report((sent ? "sent " : "not sent ") + std::to_string(lines));
  }
  Awaitable<void> throw_up(HttpExchange& exchange) {
    if (exchange.request().method == HttpMethod::get) throw std::runtime_error("on purpose");
    co_return;
  }
  Awaitable<void> nothing(HttpExchange&) { co_return; }
  Awaitable<void> broken(HttpExchange& exchange) {
    co_await exchange.start_stream(200, HttpHeaders());
    co_await exchange.write_chunk("half");
  }
  Awaitable<void> peer(HttpExchange& exchange) {
    const HttpPeer& peer = *exchange.request().peer;
    std::string text = peer.address + (peer.is_loopback ? " loopback" : "");
    if (peer.uid) text += " uid " + std::to_string(*peer.uid);
    co_await exchange.respond(HttpResponse(200, "text/plain", std::move(text)));
  }

  NetMetrics metrics_;
  EventLoop loop_;
  Router router_;
  HttpServer server_;
  EventSignal go_;
  std::uint16_t port_ = 0;
  Mailbox<std::string> happened_{1000};
  // Test thread only.
  std::vector<std::string> events_;
  std::size_t read_ = 0;
};

}  // namespace chasqui::net
