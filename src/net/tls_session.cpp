#include "net/tls_session.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <boost/asio/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/limits.h"

namespace chasqui::net {
namespace {

// What one record holds: more would leave in several, and a part of it could have been sent.
constexpr std::size_t kRecordBytes = 16 * 1024;
// Messages of the protocol itself behind the handshake, such as new keys, with nothing of HTTP between them.
constexpr std::size_t kAsidesMax = kSizeLimit<"tls_messages">;

Error cannot_use(const std::string& what, const std::string& file) {
  const unsigned long code = ERR_peek_error();  // the first one is the cause of the others
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  std::string text = reason != nullptr ? reason : "OpenSSL does not say why";
  if (ERR_SYSTEM_ERROR(code)) text = std::generic_category().message(ERR_GET_REASON(code));
  return invalid_field("tls", "Cannot use " + file + " as " + what + ": " + text + ".");
}

// A key that needs a password cannot be used by a server that starts alone; without this OpenSSL asks the terminal.
int no_password(char*, int, int, void*) { return -1; }

// HTTP/1.1 or nothing: a client that offers only other protocols is told so in the handshake.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* length, const unsigned char* offered,
                    unsigned int offered_length, void*) {
  static constexpr unsigned char kOurs[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, length, kOurs, sizeof kOurs, offered, offered_length) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

bool set_rules(SSL_CTX* rules) {
  SSL_CTX_set_options(rules, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
  // An idle connection keeps no buffers; a write that was interrupted goes on from wherever the bytes are then.
  SSL_CTX_set_mode(rules,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
  // One read is one record: OpenSSL would go on for as long as a client sends records without bytes of HTTP.
  SSL_CTX_clear_mode(rules, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_session_cache_mode(rules, SSL_SESS_CACHE_OFF);  // tickets do without
  SSL_CTX_set_default_passwd_cb(rules, &no_password);
  SSL_CTX_set_alpn_select_cb(rules, &choose_protocol, nullptr);
  return SSL_CTX_set_min_proto_version(rules, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(rules, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

}  // namespace

Result<TlsIdentity> load_tls_identity(const std::string& certificate, const std::string& key) {
  ERR_clear_error();
  const TlsIdentity rules(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (!rules || !set_rules(rules.get())) return Error{ErrorCode::internal, "TLS is not available.", {}};
  if (SSL_CTX_use_certificate_chain_file(rules.get(), certificate.c_str()) != 1) {
    return cannot_use("a certificate", certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(rules.get(), key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(rules.get()) != 1) {
    return cannot_use("the key of " + certificate, key);
  }
  // A clock that is wrong must not keep a server from starting, so a certificate that has ended is the client's to
  // judge.
  return rules;
}

std::unique_ptr<TlsSession> TlsSession::open(const TlsIdentity& identity, StreamSocket& socket) {
  SSL* const ssl = SSL_new(identity.get());
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsSession> out(new TlsSession(ssl));
  if (SSL_set_fd(ssl, socket.native_handle()) != 1) return nullptr;
  SSL_set_accept_state(ssl);
  SSL_set_msg_callback(ssl, &TlsSession::on_message);
  SSL_set_msg_callback_arg(ssl, out.get());
  return out;
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

TlsSession::Step TlsSession::shake() {
  ERR_clear_error();
  const int returned = SSL_do_handshake(ssl_);
  if (returned == 1) {
    established_ = true;
    return Step::done;
  }
  const int why = SSL_get_error(ssl_, returned);
  if (why == SSL_ERROR_WANT_READ) return Step::wants_read;
  if (why == SSL_ERROR_WANT_WRITE) return Step::wants_write;
  const unsigned long code = ERR_peek_error();
  ERR_clear_error();
  return ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST ? Step::plain_http : Step::failed;
}

// Bytes, or nothing and why.
std::size_t TlsSession::outcome(int returned, SystemError& error) {
  error = SystemError();
  if (returned > 0) return static_cast<std::size_t>(returned);
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      waits_for_ = StreamSocket::wait_read;
      error = asio::error::would_block;
      return 0;
    case SSL_ERROR_WANT_WRITE:
      waits_for_ = StreamSocket::wait_write;
      error = asio::error::would_block;
      return 0;
    case SSL_ERROR_ZERO_RETURN: error = asio::error::eof; return 0;
    default: break;
  }
  established_ = false;
  ERR_clear_error();
  error = asio::error::connection_reset;
  return 0;
}

void TlsSession::on_message(int sent, int, int type, const void*, std::size_t, ssl_st*, void* session) {
  auto* const self = static_cast<TlsSession*>(session);
  if (sent == 0 && type == SSL3_RT_HANDSHAKE && self->established_) ++self->asides_;
}

std::size_t TlsSession::read_some(asio::mutable_buffer into, SystemError& error) {
  ERR_clear_error();
  const auto room = static_cast<int>(std::min<std::size_t>(into.size(), kRecordBytes));
  const std::size_t n = outcome(SSL_read(ssl_, into.data(), room), error);
  reads_for_ = error ? waits_for_ : StreamSocket::wait_read;  // one that must answer for new keys first cannot go on
  if (n > 0) asides_ = 0;
  if (asides_ <= kAsidesMax) return n;
  established_ = false;
  error = asio::error::connection_reset;
  return 0;
}

// Pieces leave as one record: each has some thirty bytes of its own, and a token's chunk has three pieces. What was not
// sent is gathered again from the same place, which is what OpenSSL wants to see.
std::size_t TlsSession::write_some(const SendBuffers& buffers, SystemError& error) {
  ERR_clear_error();
  if (buffers.begin() == buffers.end()) return 0;
  const auto& first = *buffers.begin();
  if (first.size() >= kRecordBytes || buffers.begin() + 1 == buffers.end()) {
    const auto size = static_cast<int>(std::min(first.size(), kRecordBytes));
    return outcome(SSL_write(ssl_, first.data(), size), error);
  }
  std::array<char, kRecordBytes> record;
  const std::size_t size = asio::buffer_copy(asio::buffer(record), buffers);
  return outcome(SSL_write(ssl_, record.data(), static_cast<int>(size)), error);
}

bool TlsSession::has_unread() const { return SSL_pending(ssl_) > 0; }

void TlsSession::say_end() {
  if (!established_) return;
  established_ = false;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace chasqui::net
