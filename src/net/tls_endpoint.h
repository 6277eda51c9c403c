// What TLS connections of a server have in common: the certificate that the next one gets, and a thread for handshakes.
// Owned by the application, one for the process, made before the HTTP server and destroyed after the loop has stopped;
// loop thread only.
#pragma once

#include <utility>

#include "net/offload.h"
#include "net/tls_session.h"

namespace chasqui::net {

class TlsEndpoint {
 public:
  // A thread of its own: signatures do not wait for prompts that are tokenized, nor the other way round. A connection
  // has one job at most, so that none is refused; those of connections that were closed meanwhile are over at once.
  TlsEndpoint(EventLoop& loop, TlsIdentity identity)
      : identity_(std::move(identity)), pool_(loop, {1, kSizeLimit<"connections">, 1024 * 1024, "tls"}) {}

  // For those who connect from now on; connections keep what they have begun with.
  void replace(TlsIdentity identity) { identity_ = std::move(identity); }
  const TlsIdentity& identity() const { return identity_; }
  OffloadPool& pool() { return pool_; }

 private:
  TlsIdentity identity_;
  OffloadPool pool_;
};

}  // namespace chasqui::net
