#include "app/tls_reload.h"

#include "base/log.h"

namespace chasqui {

Result<net::TlsIdentity> read_tls_identity(const ServeConfig& config) {
  if (config.tls_certificate.empty() && config.tls_key.empty()) return net::TlsIdentity();
  if (config.tls_certificate.empty()) return invalid_field("--tls-cert", "--tls-key needs --tls-cert, too");
  if (config.tls_key.empty()) return invalid_field("--tls-key", "--tls-cert needs --tls-key, too");
  return net::load_tls_identity(config.tls_certificate, config.tls_key);
}

void TlsReload::begin() {
  again_ = true;
  if (!busy_) loop_.spawn(reload(), "certificate reload");
}

net::Awaitable<void> TlsReload::reload() {
  busy_ = true;
  while (again_) {
    again_ = false;
    auto work = [&config = config_] { return read_tls_identity(config); };  // constant after start
    Result<net::TlsIdentity> identity = co_await offload_.run(std::move(work));
    if (identity) {
      endpoint_.replace(std::move(*identity));
      log_info("certificate reloaded", {{"file", config_.tls_certificate}});
    } else {
      log_error("certificate not reloaded; the old one stays", {{"reason", identity.error().message}});
    }
  }
  busy_ = false;
}

}  // namespace chasqui
