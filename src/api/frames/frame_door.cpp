#include "api/frames/frame_door.h"

#include "api/core/key_ring.h"
#include "api/frames/frame_conversation.h"

namespace chasqui {

std::unique_ptr<net::FrameHandler> FrameDoor::open(net::FrameConnection& connection) {
  Caller caller;  // where the kernel does not say who it is: as a client without a key
  if (const auto user = connection.peer().uid) caller.tenant = tenant_of_user(*user);
  return std::make_unique<FrameConversation>(node_, connection, caller);
}

}  // namespace chasqui
