// TLS on one connection: OpenSSL on a socket that does not block, asked for bytes when the socket is ready, as the
// socket itself would be. Owned by the connection. Loop thread, but for shake(): its signature takes a millisecond and
// more, so it runs in a pool, and no other thread touches the session or closes the socket meanwhile.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/error.h"
#include "net/send_buffers.h"
#include "net/socket.h"

struct ssl_st;
struct ssl_ctx_st;

namespace chasqui::net {

// A certificate with its key, and what is spoken with it: TLS 1.2 and 1.3, forward secrecy only, HTTP/1.1.
using TlsIdentity = std::shared_ptr<ssl_ctx_st>;

// Reads both files, PEM; the certificate's may hold its chain. Errors name the file. Any thread.
Result<TlsIdentity> load_tls_identity(const std::string& certificate, const std::string& key);

class TlsSession {
 public:
  enum class Step {
    done,
    wants_read,
    wants_write,
    plain_http,  // the client speaks HTTP without TLS
    failed,
  };

  // `socket` is open and outlives the session's use. Null when memory is short.
  static std::unique_ptr<TlsSession> open(const TlsIdentity& identity, StreamSocket& socket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // One part of the handshake, as far as it goes without waiting.
  Step shake();

  // As a socket's: would_block, eof, or another error of the connection.
  std::size_t read_some(asio::mutable_buffer into, SystemError& error);
  std::size_t write_some(const SendBuffers& buffers, SystemError& error);
  // What the socket must be ready for after would_block; for a read, after the last one of them.
  StreamSocket::wait_type waits_for() const { return waits_for_; }
  StreamSocket::wait_type reads_for() const { return reads_for_; }
  // Are there bytes that no readiness of the socket will tell of?
  bool has_unread() const;
  // Tells the other end that nothing more comes; it is not waited for.
  void say_end();

 private:
  explicit TlsSession(ssl_st* ssl) : ssl_(ssl) {}
  static void on_message(int sent, int version, int type, const void* bytes, std::size_t size, ssl_st* ssl,
                         void* session);
  std::size_t outcome(int returned, SystemError& error);

  ssl_st* const ssl_;
  StreamSocket::wait_type waits_for_ = StreamSocket::wait_read;
  StreamSocket::wait_type reads_for_ = StreamSocket::wait_read;
  bool established_ = false;  // and not failed since
  std::size_t asides_ = 0;    // messages of the client since its last byte of HTTP that are none
};

}  // namespace chasqui::net
