// Whose certificates are believed when Chasqui is the client: those that the machine believes, or those in
// SSL_CERT_FILE and SSL_CERT_DIR. Read once, at start: it takes some ten milliseconds. Then any thread, one at a time.
#pragma once

#include <memory>

namespace boost::asio::ssl {
class context;
}

namespace chasqui::net {

class TlsTrust {
 public:
  TlsTrust();
  ~TlsTrust();

  boost::asio::ssl::context& tls() { return *tls_; }

 private:
  std::unique_ptr<boost::asio::ssl::context> tls_;
};

}  // namespace chasqui::net
