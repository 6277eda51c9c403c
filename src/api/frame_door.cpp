#include "api/frame_door.h"

#include <limits>

#include "api/frame_conversation.h"

namespace chasqui {

std::unique_ptr<net::FrameHandler> FrameDoor::open(net::FrameConnection& connection) {
  return std::make_unique<FrameConversation>(service_, connection, caller_of(connection.peer()));
}

Caller FrameDoor::caller_of(const net::HttpPeer& peer) {
  Caller caller;
  if (!peer.uid) return caller;
  const auto next = std::numeric_limits<std::uint32_t>::max() - static_cast<std::uint32_t>(tenants_.size());
  caller.tenant.id = tenants_.emplace(*peer.uid, next).first->second;
  return caller;
}

}  // namespace chasqui
