// A socket of ZeroMQ: hides libzmq's errors and memory. What a peer sends and leaves unread is bounded, as far as
// libzmq can do that. Used by one thread. Never waits.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "publish/zmq_library.h"

namespace chasqui::publish {

// Outlives its sockets.
class ZmqContext {
 public:
  explicit ZmqContext(const ZmqLibrary& loaded) : library(loaded), context_(loaded.ctx_new()) {}
  ~ZmqContext() { library.ctx_term(context_); }
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  void* get() const { return context_; }
  const ZmqLibrary& library;

 private:
  void* const context_;
};

// `full`: too much waits for this peer. `gone`: there is no such peer any more.
enum class ZmqSent { yes, full, gone };

class ZmqSocket {
 public:
  static constexpr std::size_t kFrameBytes = 1024;  // that a peer may send; it is cut off otherwise
  static constexpr std::size_t kFrames = 4;         // of a message; more are not read

  // Listens, or connects, as the endpoint says. `flag` is named in errors. `queue`: messages that may wait for one
  // peer; an XPUB socket loses those beyond it for that peer.
  static Result<std::unique_ptr<ZmqSocket>> open(ZmqContext& context, ZmqSocketKind kind, const std::string& endpoint,
                                                 const std::string& flag, int queue);
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  void* get() const { return socket_; }
  // With the port that the system has chosen where the endpoint says "*".
  const std::string& endpoint() const { return endpoint_; }

  // The frames of a message; nothing when none waits.
  std::optional<std::vector<std::string>> receive();
  // All frames of a message; the first one of a ROUTER socket names the peer. REQUIRES: there is one
  ZmqSent send(std::initializer_list<std::string_view> frames);

 private:
  ZmqSocket(const ZmqLibrary& library, void* socket) : library_(library), socket_(socket) {}
  void configure(ZmqSocketKind kind, int queue, bool ipv6);

  const ZmqLibrary& library_;
  void* const socket_;
  std::string endpoint_;
};

}  // namespace chasqui::publish
