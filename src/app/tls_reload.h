// The certificate: read at start, and again when the process gets SIGHUP, so that a renewed one is used without a
// restart. The old one stays when there is a mistake in the new files. Owned by the server; loop thread only, the
// reading itself runs in the offload pool.
#pragma once

#include <optional>

#include "app/config.h"
#include "net/tls_endpoint.h"

namespace chasqui {

// Null: the server does without TLS. Errors: one file without the other, or files that do not belong together.
Result<net::TlsIdentity> read_tls_identity(const ServeConfig& config);

class TlsReload {
 public:
  // Everything outlives the loop's run.
  TlsReload(const ServeConfig& config, net::TlsEndpoint& endpoint, net::EventLoop& loop, net::OffloadPool& offload)
      : config_(config), endpoint_(endpoint), loop_(loop), offload_(offload) {}

  void begin();

 private:
  net::Awaitable<void> reload();

  const ServeConfig& config_;
  net::TlsEndpoint& endpoint_;
  net::EventLoop& loop_;
  net::OffloadPool& offload_;
  bool busy_ = false;
  bool again_ = false;  // the files may have changed since they were read
};

}  // namespace chasqui
