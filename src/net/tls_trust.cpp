#include "net/tls_trust.h"

#include <boost/asio/ssl/context.hpp>
#include <openssl/ssl.h>

namespace chasqui::net {

namespace ssl = boost::asio::ssl;

TlsTrust::TlsTrust() : tls_(std::make_unique<ssl::context>(ssl::context::tls_client)) {
  SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  boost::system::error_code none_here;  // then no certificate is trusted, and each call says so
  tls_->set_default_verify_paths(none_here);
  tls_->set_verify_mode(ssl::verify_peer);
}

TlsTrust::~TlsTrust() = default;

}  // namespace chasqui::net
