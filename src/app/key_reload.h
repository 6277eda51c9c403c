// Reads the key file again when the process gets SIGHUP. The old keys stay when there is a mistake in the new ones.
// Owned by serve(); loop thread only, the reading itself runs in the offload pool.
#pragma once

#include "api/core/key_ring.h"
#include "app/config.h"
#include "net/offload.h"

namespace chasqui {

class KeyReload {
 public:
  // Everything outlives the loop's run.
  KeyReload(const ServeConfig& config, KeyRing& keys, net::EventLoop& loop, net::OffloadPool& offload)
      : config_(config), keys_(keys), loop_(loop), offload_(offload) {}

  void begin();

 private:
  net::Awaitable<void> reload();

  const ServeConfig& config_;
  KeyRing& keys_;
  net::EventLoop& loop_;
  net::OffloadPool& offload_;
  bool busy_ = false;
  bool again_ = false;  // the file may have changed since it was read
};

}  // namespace chasqui
