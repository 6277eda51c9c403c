// A socket of ZeroMQ: what of libzmq's errors and memory callers need not know. Used by one thread. Never waits.
#pragma once

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

class ZmqSocket {
 public:
  // Listens, or connects, as the endpoint says. `flag` is named in errors. `queue`: messages that may wait for one
  // peer; those beyond it are lost for that peer.
  static Result<std::unique_ptr<ZmqSocket>> open(ZmqContext& context, ZmqSocketKind kind, const std::string& endpoint,
                                                 const std::string& flag, int queue);
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  void* get() const { return socket_; }
  // With the port that the system has chosen where the endpoint says "*".
  const std::string& endpoint() const { return endpoint_; }

  // All frames of a message; nothing when none waits.
  std::optional<std::vector<std::string>> receive();
  // All frames of a message. False: it was not taken. REQUIRES: there is one
  bool send(std::initializer_list<std::string_view> frames);

 private:
  ZmqSocket(const ZmqLibrary& library, void* socket) : library_(library), socket_(socket) {}

  const ZmqLibrary& library_;
  void* const socket_;
  std::string endpoint_;
};

}  // namespace chasqui::publish
