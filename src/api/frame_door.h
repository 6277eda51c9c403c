// The local socket's door: makes the conversation of each connection, and says whose requests it brings. The kernel
// vouches for the user at the other end: each user is a tenant, and needs no key; who may connect is said by the
// socket's mode. Made by the app, outlives the frame server; loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "api/service.h"
#include "net/frame_connection.h"

namespace chasqui {

class FrameDoor {
 public:
  explicit FrameDoor(Service& service) : service_(service) {}

  std::unique_ptr<net::FrameHandler> open(net::FrameConnection& connection);
  // Users are numbered from the top, the tenants of keys from the bottom. Without a user it is whoever has no key.
  Caller caller_of(const net::HttpPeer& peer);

 private:
  Service& service_;
  std::map<std::uint32_t, std::uint32_t> tenants_;  // by user id
};

}  // namespace chasqui
