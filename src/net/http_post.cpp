#include "net/http_post.h"

#include <array>
#include <charconv>
#include <memory>
#include <tuple>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace chasqui::net {
namespace {

using Tcp = asio::ip::tcp;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using TlsStream = asio::ssl::stream<Socket&>;

// Shared with the timer, which may come when the coroutine has gone.
struct Post {
  explicit Post(EventLoop& loop) : resolver(loop.executor()), socket(loop.executor()), timer(loop.executor()) {}

  void give_up() {
    late = true;
    resolver.cancel();
    SystemError ignored;
    socket.close(ignored);
  }

  asio::ip::basic_resolver<Tcp, Executor> resolver;
  Socket socket;
  Timer timer;
  bool late = false;
};

Error failure(const Post& post, std::string_view what, const SystemError& error) {
  const std::string why = post.late ? "took too long" : error.message();
  return {ErrorCode::unavailable, std::string(what) + ": " + why, ""};
}

// "HTTP/1.1 200 OK"; 0 for anything else.
int status_of(std::string_view head) {
  if (!head.starts_with("HTTP/1.") || head.size() < 12) return 0;
  int status = 0;
  std::from_chars(head.data() + 9, head.data() + 12, status);
  return status;
}

std::string head_of(const HttpTarget& target, std::string_view content_type, std::size_t size) {
  const bool v6 = target.host.find(':') != std::string::npos;
  std::string out = "POST " + target.path + " HTTP/1.1\r\nHost: ";
  out += v6 ? '[' + target.host + ']' : target.host;
  out += ':' + std::to_string(target.port) + "\r\nContent-Type: ";
  out += content_type;
  out += "\r\nContent-Length: " + std::to_string(size) + "\r\nConnection: close\r\n\r\n";
  return out;
}

// Writes the request and reads the beginning of the answer. The stream outlives it.
template <class Stream>
Awaitable<Result<int>> exchange(const Post& post, Stream& stream, const std::string& host, std::string_view message) {
  auto [write_error, written] = co_await asio::async_write(stream, asio::buffer(message), kAwait);
  if (write_error) co_return failure(post, "writing to " + host, write_error);
  std::string head;
  std::array<char, 512> part{};
  while (head.size() < 12) {
    auto [read_error, n] = co_await stream.async_read_some(asio::buffer(part), kAwait);
    if (read_error) co_return failure(post, "reading from " + host, read_error);
    head.append(part.data(), n);
  }
  co_return status_of(head);
}

// The same inside TLS: the server must prove that it is `host`.
Awaitable<Result<int>> exchange_in_tls(Post& post, TlsTrust& trust, const std::string& host, std::string_view message) {
  TlsStream stream(post.socket, trust.tls());
  SystemError error;
  asio::ip::make_address(host, error);
  if (error) SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());  // it is a name
  stream.set_verify_callback(asio::ssl::host_name_verification(host), error);
  if (!error) std::tie(error) = co_await stream.async_handshake(TlsStream::client, kAwait);
  if (error) co_return failure(post, "TLS with " + host, error);
  Result<int> status = co_await exchange(post, stream, host, message);
  co_return status;
}

Error bad_url(std::string_view url) {
  return invalid_field("url",
                       "\"" + std::string(url) + "\" must be http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]");
}

}  // namespace

Result<HttpTarget> read_http_url(std::string_view url) {
  HttpTarget out;
  out.tls = url.starts_with("https://");
  if (!out.tls && !url.starts_with("http://")) return bad_url(url);
  if (out.tls) out.port = 443;
  std::string_view rest = url.substr(url.find("//") + 2);
  const std::size_t slash = rest.find('/');
  if (slash != rest.npos) out.path = rest.substr(slash);
  rest = rest.substr(0, slash);
  for (const unsigned char c : url) {
    if (c <= ' ' || c == '@' || c == '?' || c == '#' || c >= 0x7f) return bad_url(url);
  }
  std::size_t colon = rest.rfind(':');
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == rest.npos || (close + 1 < rest.size() && rest[close + 1] != ':')) return bad_url(url);
    out.host = rest.substr(1, close - 1);
    colon = close + 1 < rest.size() ? close + 1 : rest.npos;
  } else {
    out.host = rest.substr(0, colon);
  }
  if (out.host.empty()) return bad_url(url);
  if (colon == rest.npos) return out;
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (failed != std::errc{} || end != port.data() + port.size() || out.port == 0) return bad_url(url);
  return out;
}

Awaitable<Result<int>> http_post(EventLoop& loop, HttpTarget target, TlsTrust* trust, std::string content_type,
                                 std::string body, Duration limit) {
  const auto post = std::make_shared<Post>(loop);
  post->timer.expires_after(limit);
  post->timer.async_wait([post](SystemError error) {
    if (!error) post->give_up();
  });
  const std::string port = std::to_string(target.port);
  auto [resolve_error, addresses] = co_await post->resolver.async_resolve(target.host, port, kAwait);
  if (resolve_error) co_return failure(*post, "resolving " + target.host, resolve_error);
  auto [connect_error, endpoint] = co_await asio::async_connect(post->socket, addresses, kAwait);
  if (connect_error) co_return failure(*post, "connecting to " + target.host, connect_error);
  std::string message = head_of(target, content_type, body.size());
  message += body;
  Result<int> status = 0;
  if (target.tls) {
    CHECK(trust != nullptr, "TLS needs trusted certificates");
    status = co_await exchange_in_tls(*post, *trust, target.host, message);
  } else {
    status = co_await exchange(*post, post->socket, target.host, message);
  }
  post->timer.cancel();
  co_return status;
}

}  // namespace chasqui::net
