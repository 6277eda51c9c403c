// A keep-alive connection to the server, over TCP or a Unix socket, used for one exchange at a time, with one deadline
// for the whole of it. Owned by the coroutine that exchanges on it, else by the run's pool; the loop's thread.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include <boost/asio/generic/stream_protocol.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "bench/target.h"
#include "net/awaitable.h"

namespace chasqui::bench {

namespace asio = boost::asio;
using Endpoint = asio::generic::stream_protocol::endpoint;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(net::Executor executor, const Endpoint& endpoint)
      : endpoint_(endpoint), socket_(executor), timer_(executor) {}

  // Connects when it is not connected. False when that fails.
  net::Awaitable<bool> open();
  // False when the connection broke, or the deadline passed.
  net::Awaitable<bool> write(std::string_view bytes);
  // Waits for bytes, which are valid until the next call. Empty at the end of the connection or the deadline.
  net::Awaitable<std::string_view> read();

  void set_deadline(TimePoint deadline);
  void clear_deadline();
  bool timed_out() const { return timed_out_; }

  void close();
  bool is_open() const { return socket_.is_open(); }
  // True from the second exchange on: the server may have closed it meanwhile.
  bool was_used() const { return was_used_; }
  void mark_used() { was_used_ = true; }

 private:
  using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, net::Executor>;

  Endpoint endpoint_;
  Socket socket_;
  net::Timer timer_;
  std::uint64_t deadlines_ = 0;  // set so far: an old one that has just expired says nothing
  bool timed_out_ = false;
  bool was_used_ = false;
  std::array<char, 16 * 1024> buffer_;
};

using ConnectionPtr = std::shared_ptr<Connection>;

// Where to connect. Asks the name service, and of several addresses takes the first that accepts: blocks.
Result<Endpoint> resolve(const Target& target, asio::io_context& loop);

}  // namespace chasqui::bench
