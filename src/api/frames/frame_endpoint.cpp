#include "api/frames/frame_endpoint.h"

#include "api/core/key_ring.h"
#include "api/frames/frame_channel.h"

namespace chasqui {

std::unique_ptr<net::FrameHandler> FrameEndpoint::open(net::FrameConnection& connection) {
  Caller caller;  // where the kernel does not say who it is: as a client without a key
  if (const auto user = connection.peer().uid) caller.tenant = tenant_of_user(*user);
  return std::make_unique<FrameChannel>(node_, connection, caller);
}

}  // namespace chasqui
