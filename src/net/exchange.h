// One request and the answer to it: what a handler gets. The handler answers with one respond(), or with
// start_stream(), any number of write_chunk() and write_now(), and one finish_stream(). Without any of them there is
// a 500; a handler that returns inside a stream makes the connection close, which clients see as a broken answer.
//
// Owned by the connection's coroutine and alive until the handler returns; loop thread only. An interface, so that
// handlers can be tested without sockets.
//
// The client is gone when it closes, resets, closes its sending half, or takes no byte for the write limit. The
// connection is then closed at once, pending and later writes give false, and the callback below runs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/answer_room.h"
#include "net/awaitable.h"
#include "net/http_request.h"
#include "net/http_response.h"

namespace chasqui::net {

class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  virtual const HttpRequest& request() const = 0;
  // Moves the body out of request(), for work that goes on elsewhere: copying a large one would hold the loop.
  virtual std::string take_body() = 0;
  // Nothing of the body is in memory any more: it makes room for others', however long the answer takes.
  virtual void body_was_read() {}

  // Value of `{name}` in the route's pattern, decoded. REQUIRES: the pattern has it.
  const std::string& param(std::string_view name) const;
  void set_params(std::vector<std::pair<std::string, std::string>> params) { params_ = std::move(params); }
  const std::vector<std::pair<std::string, std::string>>& params() const { return params_; }

  // Whose answers count together while they are not read; before it is called, those of all who have no key.
  virtual void set_owner(const AnswerOwner&) {}

  // A header for whatever answer follows (X-Request-Id). REQUIRES: !response_started()
  virtual void add_response_header(std::string_view name, std::string_view value) = 0;

  // Sends a whole response in one write; a large one becomes a 503 where too many are not read. False: the client is
  // gone. REQUIRES: !response_started()
  virtual Awaitable<bool> respond(HttpResponse response) = 0;

  // Sends the head of a stream at once. False: the client is gone. REQUIRES: !response_started()
  virtual Awaitable<bool> start_stream(int status, HttpHeaders headers) = 0;
  // Sends `data` as one chunk and returns when the kernel has taken all of it, so a slow client slows its handler
  // down and nothing piles up here. `data` must stay alive until then; an empty one sends nothing.
  virtual Awaitable<bool> write_chunk(std::string_view data) = 0;
  // The same for callers that cannot wait: hands the kernel what it takes at once. True when that was all of it. False
  // when the client is gone, or what is left is kept and leaves before the data of the next awaited write, which has to
  // come first now. REQUIRES: no write is pending.
  virtual bool write_now(std::string_view data) = 0;
  // Ends the stream, with `data` as its last chunk in the same write.
  virtual Awaitable<bool> finish_stream(std::string_view data = {}) = 0;

  // The stream ends in an error: it is no answer to give again.
  virtual void stream_failed() {}

  virtual bool response_started() const = 0;
  // Bytes of the present write that the kernel has not taken yet; 0 when no write is pending.
  virtual std::size_t unsent_bytes() const = 0;

  // True from the moment that the client is known to be gone. Starts to watch for it if needed.
  virtual bool client_gone() = 0;
  // Runs `callback` once, on the loop, when the client goes, whatever the handler is waiting for then; at once when
  // it has gone already. Replaces an earlier callback; an empty one takes it away. It is taken away when the handler
  // returns. It must not resume the handler directly (EventSignal::notify() does not).
  virtual void on_client_gone(std::function<void()> callback) = 0;

 private:
  std::vector<std::pair<std::string, std::string>> params_;
};

}  // namespace chasqui::net
