#include "net/tls_session.h"

#include <filesystem>
#include <memory>
#include <string>

#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

namespace chasqui::net {
namespace {

namespace fs = std::filesystem;

// A certificate of its own, with its key, in one file.
void write_identity(const std::string& path) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  std::FILE* const file = std::fopen(path.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  PEM_write_X509(file, certificate);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

// A session with a client of OpenSSL's at the other end, both behind the handshake.
struct TlsSessionTest : testing::Test {
  TlsSessionTest() {
    write_identity(path);
    identity = *load_tls_identity(path, path);
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[0]);
    session = TlsSession::open(identity, socket);
    rules = SSL_CTX_new(TLS_client_method());
    client = SSL_new(rules);
    SSL_set_fd(client, ends[1]);
    peer = ends[1];
    auto step = TlsSession::Step::wants_read;
    for (int i = 0; i < 20 && (step != TlsSession::Step::done || SSL_is_init_finished(client) == 0); ++i) {
      SSL_connect(client);
      if (step != TlsSession::Step::done) step = session->shake();
    }
    EXPECT_EQ(step, TlsSession::Step::done);
  }
  ~TlsSessionTest() override {
    SSL_free(client);
    SSL_CTX_free(rules);
    ::close(peer);
    fs::remove(path);
  }

  void send_new_keys(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(SSL_key_update(client, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
      ASSERT_EQ(SSL_do_handshake(client), 1);
    }
  }

  // Until the session has nothing to read; its last error.
  SystemError read_all(int& reads, std::string& text) {
    SystemError error;
    char bytes[1000];
    for (reads = 0; !error && reads < 1000; ++reads) {
      text.append(bytes, session->read_some(asio::buffer(bytes), error));
      char waiting = 0;
      const bool more = ::recv(socket.native_handle(), &waiting, 1, MSG_PEEK) == 1;
      if (error == asio::error::would_block && more) error = SystemError();
    }
    return error;
  }

  const std::string path = fs::temp_directory_path() / ("chasqui-tls-" + std::to_string(::getpid()));
  asio::io_context loop;
  StreamSocket socket{loop};
  TlsIdentity identity;
  std::unique_ptr<TlsSession> session;
  SSL_CTX* rules = nullptr;
  SSL* client = nullptr;
  int peer = -1;
};

TEST_F(TlsSessionTest, AReadTakesOneMessageOfTheProtocolAtMost) {
  send_new_keys(20);
  ASSERT_EQ(SSL_write(client, "GET", 3), 3);
  int reads = 0;
  std::string text;
  EXPECT_EQ(read_all(reads, text), asio::error::would_block);
  EXPECT_EQ(text, "GET");
  EXPECT_GT(reads, 20) << "others have their turn between them";
}

TEST_F(TlsSessionTest, AClientThatSendsNothingButNewKeysIsLeft) {
  send_new_keys(100);
  int reads = 0;
  std::string text;
  EXPECT_EQ(read_all(reads, text), asio::error::connection_reset);
  EXPECT_LT(reads, 50);
}

}  // namespace
}  // namespace chasqui::net
