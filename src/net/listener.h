// A listening socket, TCP or Unix. Owned by the acceptor; loop thread only. Closing (or destroying) it ends a
// pending accept and removes the Unix socket's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "net/event_loop.h"
#include "net/socket.h"

namespace chasqui::net {

// Where to listen: a path, or a host and port. Constructors keep the two apart.
struct ListenAddress {
  static ListenAddress tcp(std::string host, std::uint16_t port);  // literal IPv4 or IPv6, or "localhost"; 0: any port
  // A socket that listens already, from the parent process; it stays theirs when we close our end.
  static Result<ListenAddress> inherited(int descriptor);
  static ListenAddress unix_socket(std::string path, mode_t mode = 0600);

  std::string host;
  std::uint16_t port = 0;
  std::string path;  // not empty: a Unix socket
  mode_t mode = 0600;
  int descriptor = -1;   // of an inherited one
  bool v6_only = false;  // `::` does not mean IPv4 addresses, too: another address of the server does

  bool is_unix() const { return !path.empty(); }
  // A path, or a host that can be bound without asking a name server.
  bool is_valid() const;
  // Only this machine can reach it.
  bool is_loopback() const;
};

// What was bound.
struct BoundAddress {
  std::string text;  // "127.0.0.1:8080", "[::1]:8080", "unix:/run/chasqui.sock"
  std::uint16_t port = 0;
};

// Binds and listens, without anybody who accepts: the descriptor, which is closed on exec.
Result<int> open_listening(const ListenAddress& address);

// Whether a server could listen on all of several addresses now. Opens each and closes them at its end, so that one
// that is given twice is found, too; an inherited socket is not touched.
class ListeningCheck {
 public:
  ListeningCheck() = default;
  ListeningCheck(const ListeningCheck&) = delete;
  ListeningCheck& operator=(const ListeningCheck&) = delete;
  ~ListeningCheck();

  Result<void> add(const ListenAddress& address);

 private:
  struct Open {
    int descriptor;
    std::string path;  // of a Unix socket
  };
  std::vector<Open> open_;
};

class Listener {
 public:
  static Result<Listener> open(EventLoop& loop, const ListenAddress& address);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  const BoundAddress& bound() const { return bound_; }
  bool is_unix() const { return is_unix_; }

  // The next connection; nothing when the listener was closed. Waits a little and tries again when the process is out
  // of descriptors or the connection broke before it was taken.
  Awaitable<std::optional<StreamSocket>> accept();
  void close();

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;
  Listener(EventLoop& loop, Acceptor acceptor, BoundAddress bound, const ListenAddress& address);

  EventLoop& loop_;
  Acceptor acceptor_;
  BoundAddress bound_;
  bool is_unix_ = false;
  std::string unlink_path_;  // empty: it is not ours to remove
};

}  // namespace chasqui::net
