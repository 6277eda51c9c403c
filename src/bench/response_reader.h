// The bytes of one HTTP/1.1 response: its status, the few headers that a load generator needs, and its body without
// the chunked coding. Pull-style and without copies: take() is called until the bytes are used up. Trusts the server
// with everything but lengths. One per response; single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace chasqui::bench {

class ResponseReader {
 public:
  static constexpr std::size_t kHeadMax = 64 * 1024;

  // Takes bytes off the front of `bytes` and returns the piece of the body among them, often empty. Takes all of them
  // when called again while bytes are left, or stops at done() or failed().
  std::string_view take(std::string_view& bytes);
  // The server closed: the end of a response that has no length. False when that was too early.
  bool close();

  bool head_done() const { return state_ > State::head; }
  bool done() const { return state_ == State::done; }
  bool failed() const { return state_ == State::failed; }
  bool keeps_alive() const { return keep_alive_; }
  int status() const { return status_; }
  // Header values, empty when they are missing.
  const std::string& retry_after() const { return retry_after_; }
  const std::string& retry_after_ms() const { return retry_after_ms_; }

 private:
  enum class State { head, sized, until_close, chunk_size, chunk_bytes, chunk_end, trailer, done, failed };

  bool take_line(std::string_view& bytes);
  std::string_view take_counted(std::string_view& bytes, State next);
  void end_line();
  void read_head_line(std::string_view line);
  void end_head();
  void read_chunk_size(std::string_view line);

  State state_ = State::head;
  std::string line_;
  std::size_t head_size_ = 0;
  std::uint64_t left_ = 0;  // of the body or of the chunk
  int status_ = 0;
  bool first_line_ = true;
  bool keep_alive_ = true;
  bool chunked_ = false;
  bool has_length_ = false;
  std::string retry_after_, retry_after_ms_;
};

}  // namespace chasqui::bench
