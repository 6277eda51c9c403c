// An exchange that remembers what it answers, for answers that may have to be given again. In the frame of the
// coroutine that has the handler run; everything goes to the exchange below, which outlives it. Loop thread only.
//
// bounded: of an answer that gets longer than `bytes_max` nothing is remembered.
#pragma once

#include <optional>
#include <string>

#include "net/exchange.h"

namespace chasqui::net {

// A whole answer with status 200. Streams are one text, in which the places of the writes are lost.
struct RecordedAnswer {
  HttpHeaders headers;  // those of the handler
  std::string body;
  bool streamed = false;

  std::size_t bytes() const;
};

class RecordedExchange final : public HttpExchange {
 public:
  RecordedExchange(HttpExchange& below, std::size_t bytes_max) : below_(below), bytes_max_(bytes_max) {
    set_params(below.params());
  }

  // What was answered, once it has been said to its end, whether or not the client is still there; nothing where it was
  // an error, or is too long.
  std::optional<RecordedAnswer> take_answer();

  const HttpRequest& request() const override { return below_.request(); }
  std::string take_body() override { return below_.take_body(); }
  void set_owner(const AnswerOwner& owner) override { below_.set_owner(owner); }
  void add_response_header(std::string_view name, std::string_view value) override;
  Awaitable<bool> respond(HttpResponse response) override;
  Awaitable<bool> start_stream(int status, HttpHeaders headers) override;
  Awaitable<bool> write_chunk(std::string_view data) override;
  bool write_now(std::string_view data) override;
  Awaitable<bool> finish_stream(std::string_view data) override;
  bool response_started() const override { return below_.response_started(); }
  std::size_t unsent_bytes() const override { return below_.unsent_bytes(); }
  bool client_gone() override { return below_.client_gone(); }
  void on_client_gone(std::function<void()> callback) override { below_.on_client_gone(std::move(callback)); }

 private:
  void add(std::string_view data);

  HttpExchange& below_;
  const std::size_t bytes_max_;
  HttpHeaders extra_;
  RecordedAnswer answer_;
  int status_ = 0;
  bool too_long_ = false;
  bool whole_ = false;
};

}  // namespace chasqui::net
