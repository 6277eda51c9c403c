// Collects the head of a request and judges, byte by byte, what llhttp judges too late or not at all: limits, line
// ends, folded and nameless headers, the request line's method and version. Pure. Part of HttpParser.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/http_limits.h"

namespace chasqui::net {

struct Refusal {
  int status = 0;
  std::string_view message;  // a literal
};

class HeadScanner {
 public:
  enum class State { more, complete, refused };

  explicit HeadScanner(const HttpLimits& limits) : limits_(limits) {}

  // Takes bytes up to the end of the head; returns how many.
  std::size_t feed(std::string_view bytes);

  State state() const { return state_; }
  const Refusal& refusal() const { return refusal_; }
  // The head with its last blank line, once complete. release() also gives the memory back.
  const std::string& head() const { return head_; }
  void release() { std::string().swap(head_); }
  bool untouched() const { return head_.empty() && !after_cr_; }

 private:
  void take(char byte);
  void end_line();
  bool check_request_line();
  void refuse(int status, std::string_view message);

  const HttpLimits& limits_;
  State state_ = State::more;
  Refusal refusal_;
  std::string head_;
  std::size_t line_start_ = 0;   // in head_
  std::size_t header_start_ = 0;  // in head_, 0 while in the request line
  std::size_t header_count_ = 0;
  std::size_t blank_lines_ = 0;  // before the request line
  bool after_cr_ = false;
};

}  // namespace chasqui::net
