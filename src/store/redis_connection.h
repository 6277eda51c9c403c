// A connection to Redis (hiredis): commands that go together, and their answers. Connects at the first use, and again
// at the next one after any failure. Blocks, but never longer than its patience. One thread at a time.
//
// Errors: unavailable where there is no answer, or one that makes no sense; then it is not known whether the commands
// were executed. What Redis itself says is an error of the reply.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace chasqui::store {

// redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or unix:///PATH for a socket.
struct RedisAddress {
  std::string host;  // empty: `path`
  std::uint16_t port = 6379;
  std::string path;
  std::string user;
  std::string password;
  int database = 0;

  // Without the password, for messages.
  std::string shown() const;
};
// invalid_request, without a field, says what is wrong; never the password.
Result<RedisAddress> read_redis_address(std::string_view url);

struct RedisReply {
  enum class Kind { nothing, integer, text, list, error };
  Kind kind = Kind::nothing;
  std::int64_t integer = 0;
  std::string text;  // of an error, too
  std::vector<RedisReply> list;
};

// A command with its arguments, which may have any bytes.
using RedisCommand = std::vector<std::string>;

class RedisConnection {
 public:
  // `patience`: for connecting, and for each answer.
  RedisConnection(RedisAddress address, Duration patience);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // All are sent before the first answer is read. `blocks`: for so long more an answer may take, of commands that wait
  // for something.
  Result<std::vector<RedisReply>> run(std::span<const RedisCommand> commands, Duration blocks = Duration::zero());
  // An error of Redis is `unavailable` here.
  Result<RedisReply> run_one(const RedisCommand& command, Duration blocks = Duration::zero());

  const RedisAddress& address() const { return address_; }

 private:
  struct RedisLink;

  bool has_ended() const;
  Result<void> connect();
  Error broken(const std::string& why);

  const RedisAddress address_;
  const Duration patience_;
  std::unique_ptr<RedisLink> link_;  // null: not connected
};

}  // namespace chasqui::store
