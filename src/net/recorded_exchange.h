// An exchange that remembers what it answers, for answers that may have to be given again. Loop thread only.
//
// bounded: of an answer that gets longer than `bytes_max` nothing is remembered.
#pragma once

#include <optional>
#include <string>

#include "net/forwarding_exchange.h"

namespace chasqui::net {

// A whole answer with status 200. Streams are one text, in which the places of the writes are lost.
struct RecordedAnswer {
  HttpHeaders headers;  // those of the handler
  std::string body;
  bool streamed = false;

  std::size_t bytes() const;
};

class RecordedExchange final : public ForwardingExchange {
 public:
  RecordedExchange(HttpExchange& below, std::size_t bytes_max) : ForwardingExchange(below), bytes_max_(bytes_max) {}

  // What was answered, once it has been said to its end, whether or not the client is still there; nothing where it was
  // an error, or is too long.
  std::optional<RecordedAnswer> take_answer();

  void add_response_header(std::string_view name, std::string_view value) override;
  Awaitable<bool> respond(HttpResponse response) override;
  Awaitable<bool> start_stream(int status, HttpHeaders headers) override;
  Awaitable<bool> write_chunk(std::string_view data) override;
  bool write_now(std::string_view data) override;
  Awaitable<bool> finish_stream(std::string_view data) override;
  void stream_failed() override;

 private:
  void add(std::string_view data);

  const std::size_t bytes_max_;
  HttpHeaders extra_;
  RecordedAnswer answer_;
  int status_ = 0;
  bool too_long_ = false;
  bool whole_ = false;
  bool failed_ = false;
};

}  // namespace chasqui::net
