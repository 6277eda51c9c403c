// The local socket's door: makes the conversation of each connection, and says whose requests it brings. The kernel
// vouches for the user at the other end: each user is a tenant, and needs no key; who may connect is said by the
// socket's mode. Made by the app, outlives the frame server; loop thread only.
#pragma once

#include <memory>

#include "api/core/node.h"
#include "net/frame_connection.h"

namespace chasqui {

class FrameEndpoint {
 public:
  explicit FrameEndpoint(Node& node) : node_(node) {}

  std::unique_ptr<net::FrameHandler> open(net::FrameConnection& connection);

 private:
  Node& node_;
};

}  // namespace chasqui
