// One process that decodes what clients send, and the socket to it. What it says is checked before it is believed
// (app/decoder_wire); what breaks it is its end, and that of nothing else. Owned by MediaDecoders; used by one thread
// at a time, which waits for it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "app/decoder_wire.h"
#include "base/clock.h"

namespace chasqui {

// Starts a process whose standard input is this socket, which stays the caller's. Returns its id; 0: there is none.
using SpawnDecoder = std::function<pid_t(int socket)>;

// This binary again, as app/decoder_child.
pid_t spawn_media_decoder(int socket);

class DecoderProcess {
 public:
  // Null: it cannot be started, or does not greet within `longest`, which each order may take, too.
  static std::unique_ptr<DecoderProcess> start(const SpawnDecoder& spawn, Duration longest);
  ~DecoderProcess();
  DecoderProcess(const DecoderProcess&) = delete;
  DecoderProcess& operator=(const DecoderProcess&) = delete;

  // Where the bytes of an answer go, as many as it says: their number has been checked.
  using Place = std::function<std::span<std::byte>(const DecodeAnswer& answer)>;
  enum class Outcome { answered, late, ended, impossible };  // all but the first: it is of no use any more
  Outcome decode(const DecodeOrder& order, std::string_view file, const Place& place);

  // No system call but those of a decoder: else other limits hold alone.
  bool filtered() const { return filtered_; }
  // It is there, and says nothing unasked.
  bool waits() const;
  // Ends it, if it has not ended. How that came about, in words.
  std::string end();

 private:
  DecoderProcess(pid_t id, int socket, Duration longest) : id_(id), socket_(socket), longest_(longest) {}
  Outcome send(const void* from, std::size_t bytes, TimePoint until);
  Outcome receive(void* to, std::size_t bytes, TimePoint until);
  Outcome wait_until(short event, TimePoint until) const;

  const RealClock clock_;
  pid_t id_;  // 0: it has ended
  bool filtered_ = false;
  const int socket_;
  const Duration longest_;
};

}  // namespace chasqui
