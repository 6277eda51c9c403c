// What all connections of one server share. Owned by the server and, through shared_ptr, by each connection, so that
// a connection may end after its server. Loop thread only.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "net/answer_room.h"
#include "net/event_loop.h"
#include "net/http_headers.h"
#include "net/http_limits.h"
#include "net/router.h"
#include "net/turn_queue.h"

namespace chasqui::net {

class HttpConnection;
class OffloadPool;

struct HttpShared {
  HttpShared(EventLoop& event_loop, const Router& routes, const HttpLimits& bounds)
      : loop(event_loop),
        router(routes),
        limits(bounds),
        answers(bounds.answers_bytes),
        turns(event_loop, bounds.turn_time),
        scratch(64 * 1024) {}
  virtual ~HttpShared() = default;

  virtual void connection_ended() = 0;

  // "Sun, 06 Nov 1994 08:49:37 GMT", made once a second.
  const std::string& date() {
    const std::int64_t second = loop.unix_seconds();
    if (second != date_second_) {
      date_second_ = second;
      date_ = http_date(second);
    }
    return date_;
  }

  // Constant after construction, but for the default headers, which are set before the first connection.
  EventLoop& loop;
  const Router& router;
  const HttpLimits limits;
  HttpHeaders default_headers;

  bool leaving = false;   // each answer is the last of its connection
  bool draining = false;  // … and connections without a request are not waited for
  std::list<HttpConnection*> connections;
  std::list<HttpConnection*> handshakes;  // those of `connections` that are in one, the oldest first
  std::size_t exchanges = 0;
  std::size_t body_bytes = 0;  // of all requests in memory
  AnswerRoom answers;
  TurnQueue turns;                    // for requests that were there before their connection's last answer was
  OffloadPool* compressor = nullptr;  // for large answers; null: they are sent as they are
  std::size_t compressing = 0;        // answers, now
  // Every read lands here first and is parsed before anything else runs, so connections need no buffers of their own.
  std::vector<char> scratch;

 private:
  std::int64_t date_second_ = -1;
  std::string date_;
};

}  // namespace chasqui::net
