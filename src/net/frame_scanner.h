// Cuts the bytes of a connection into messages: frames (`uint32_le length | body`), or lines for people. Which of them
// is said by the first four bytes: the last byte of a length is 0, and no text has one. Pure; one connection's,
// loop thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/frame_limits.h"

namespace chasqui::net {

class FrameScanner {
 public:
  enum class Mode { unknown, frames, lines };
  enum class State { partial, complete, too_large };

  explicit FrameScanner(const FrameLimits& limits) : limits_(limits) {}

  // Takes bytes up to the end of one message and says how many; to be called again, also without bytes, for as long as
  // messages are complete. REQUIRES: state() == partial
  std::size_t feed(std::string_view bytes);
  // Nothing has followed for a while: what is here are lines, if they are lines at all.
  void settle();
  // Nothing will follow at all. True when that makes a line of what is here, which then lacks only its line break.
  bool end();
  // Gives up what is here; no bytes may follow.
  void drop();
  // The message; the next one begins. REQUIRES: state() == complete
  std::string take();

  Mode mode() const { return mode_; }
  State state() const { return state_; }
  // Part of a message is here, and how much of it.
  bool inside() const { return in_body_ || !lead_.empty() || !body_.empty(); }
  std::size_t held() const { return lead_.size() + body_.size(); }
  // A line that may be the beginning of a frame.
  bool unsettled() const { return mode_ == Mode::unknown && lead_.find('\n') != std::string::npos; }

 private:
  std::size_t feed_lead(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  std::size_t feed_line(std::string_view bytes);
  // What is before the line break goes to the line; how many bytes that took.
  std::size_t add_to_line(std::string_view bytes);

  const FrameLimits& limits_;
  std::string lead_;  // at most four bytes: a length, or what could be one
  std::string body_;
  std::size_t length_ = 0;
  Mode mode_ = Mode::unknown;
  State state_ = State::partial;
  bool in_body_ = false;  // its length is known
};

}  // namespace chasqui::net
