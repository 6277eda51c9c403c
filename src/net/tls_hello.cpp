#include "net/tls_hello.h"

#include <array>
#include <tuple>

#include <boost/asio/buffer.hpp>

namespace chasqui::net {
namespace {

constexpr std::size_t kRecordBytesMax = 16 * 1024 + 2048;  // RFC 5246, 6.2.3

}  // namespace

std::size_t tls_record_bytes(std::string_view begun) {
  if (begun.size() < kTlsRecordHeaderBytes) return kTlsRecordHeaderBytes;
  const auto byte = [begun](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(begun[at])); };
  const std::size_t length = byte(3) * 256 + byte(4);
  const bool handshake = byte(0) == 22 && byte(1) == 3;
  return handshake && length <= kRecordBytesMax ? kTlsRecordHeaderBytes + length : kTlsRecordHeaderBytes;
}

Awaitable<void> hello_arrives(EventLoop& loop, StreamSocket& socket) {
  std::array<char, kTlsRecordHeaderBytes> header{};
  std::size_t wanted = header.size();
  bool more = true;
  while (more) {
    wake_at(socket, wanted);
    const auto ready = co_await socket.async_wait(StreamSocket::wait_read, kAwait);
    loop.turn_begins();
    SystemError error = std::get<0>(ready);
    if (error) co_return;
    const std::size_t arrived = socket.available(error);
    const std::size_t seen = error ? 0 : socket.receive(asio::buffer(header), StreamSocket::message_peek, error);
    // Woken with less than was waited for: that is all there will be.
    const bool ended = error || arrived < wanted;
    wanted = tls_record_bytes(std::string_view(header.data(), seen));
    more = !ended && arrived < wanted;
  }
  wake_at(socket, 1);
}

}  // namespace chasqui::net
