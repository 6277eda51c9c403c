#include "bench/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

namespace chasqui::bench {

net::Awaitable<bool> Connection::open() {
  if (socket_.is_open()) co_return true;
  was_used_ = false;
  const auto [error] = co_await socket_.async_connect(endpoint_, net::kAwait);
  if (error) {
    close();
    co_return false;
  }
  net::SystemError ignored;  // Unix sockets do not have it
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  co_return true;
}

net::Awaitable<bool> Connection::write(std::string_view bytes) {
  const auto [error, n] = co_await asio::async_write(socket_, asio::buffer(bytes), net::kAwait);
  co_return !error;
}

net::Awaitable<std::string_view> Connection::read() {
  const auto [error, n] = co_await socket_.async_read_some(asio::buffer(buffer_), net::kAwait);
  co_return std::string_view(buffer_.data(), error ? 0 : n);
}

void Connection::set_deadline(TimePoint deadline) {
  timed_out_ = false;
  timer_.expires_at(deadline);
  timer_.async_wait([weak = weak_from_this(), number = ++deadlines_](net::SystemError error) {
    const auto connection = weak.lock();
    if (error || !connection || connection->deadlines_ != number) return;
    connection->timed_out_ = true;
    connection->close();
  });
}

void Connection::clear_deadline() {
  ++deadlines_;
  timer_.cancel();
}

void Connection::close() {
  net::SystemError ignored;
  socket_.close(ignored);
}

Result<Endpoint> resolve(const Target& target, asio::io_context& loop) {
  if (!target.socket_path.empty()) return Endpoint(asio::local::stream_protocol::endpoint(target.socket_path));
  asio::ip::tcp::resolver resolver(loop);
  net::SystemError error;
  const auto found = resolver.resolve(target.host, std::to_string(target.port), error);
  if (error || found.empty()) return invalid_field("url", "--url: there is no host " + target.host);
  // localhost may have two addresses, and the server listens on one of them.
  Endpoint endpoint;
  for (const auto& entry : found) {
    asio::ip::tcp::socket socket(loop);
    endpoint = entry.endpoint();
    socket.connect(entry.endpoint(), error);
    if (!error) break;
  }
  return endpoint;
}

}  // namespace chasqui::bench
