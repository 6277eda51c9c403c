// Bytes in, one HttpRequest out. Pure: no I/O, no clock. Built on llhttp in strict mode, after checks of our own that
// see the head first (net/head_scanner.h). Feeding it byte by byte or at once gives the same result, but for
// the byte at which extensions and trailers of chunks are found to be too large. One parser per request; owned by the
// exchange that is being read.
//
// It stops at the end of the head, so that a request can be refused before its body is read; accept_body() goes on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/head_scanner.h"
#include "net/http_limits.h"
#include "net/http_request.h"

extern "C" {
#include <llhttp.h>
}

namespace chasqui::net {

class HttpParser {
 public:
  enum class State {
    head,       // the head is incomplete
    head_done,  // waits for accept_body(); takes no bytes
    body,       // the body is incomplete
    complete,   // takes no bytes
    refused,    // takes no bytes; refusal() says why; the connection cannot be used again
  };

  // `limits` and `request` must outlive the parser.
  HttpParser(const HttpLimits& limits, HttpRequest& request);
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  // Returns how many of the bytes were taken; the rest belongs to what follows (the body, the next request).
  std::size_t feed(std::string_view bytes);

  // REQUIRES: state() == State::head_done
  void accept_body();

  State state() const { return state_; }
  // True before the first byte of a request (line ends before it do not count).
  bool untouched() const { return state_ == State::head && scanner_.untouched(); }
  // True when the client waits for `100 Continue` before it sends the body.
  bool expects_continue() const { return expects_continue_; }
  // REQUIRES: state() == State::refused
  const Refusal& refusal() const { return refusal_; }

 private:
  friend struct ParserCallbacks;

  void finish_head();
  void check_head();
  bool check_transfer_encoding();
  void take_absolute_target();
  bool take_target();
  std::size_t feed_sized_body(std::string_view bytes);
  std::size_t feed_chunked_body(std::string_view bytes);
  std::size_t refuse_chunks(std::size_t taken);
  void refuse(int status, std::string_view message);

  const HttpLimits& limits_;
  HttpRequest& request_;
  State state_ = State::head;
  HeadScanner scanner_;
  Refusal refusal_;
  llhttp_t llhttp_;
  std::string field_, value_;  // the header that is being collected
  std::size_t body_left_ = 0;
  std::size_t chunk_count_ = 0;
  std::size_t chunked_bytes_ = 0;  // of the chunked coding, data included
  char last_byte_ = 0;             // that the chunked coding has had
  bool chunked_ = false;
  bool head_parsed_ = false;
  bool expects_continue_ = false;
};

}  // namespace chasqui::net
