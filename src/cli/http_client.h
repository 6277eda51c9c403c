// One request at a time to a server, for commands that have nothing else to do: blocks until the answer has ended, and
// gives its body piece by piece as it comes. Shares its connection and its reader with the load generator. Keeps the
// connection between requests. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "bench/connection.h"
#include "bench/response_reader.h"
#include "bench/target.h"

namespace chasqui::cli {

struct HttpCall {
  std::string method = "GET";
  std::string path{};
  std::string body{};
  std::string type = "application/json";  // of the body
  Duration timeout{};  // zero: none
  // Called for the body of a 200; what others say is kept in HttpAnswer::body.
  std::function<void(std::string_view)> piece{};
  std::function<bool()> stopped{};  // asked every 50 ms
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  bool stopped = false;
};

class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> open(const std::string& url, std::string key);

  // Errors say what kept the answer from coming; a status other than 200 is none.
  Result<HttpAnswer> call(const HttpCall& call);

 private:
  static constexpr std::size_t kBodyMax = 16 << 20;

  HttpClient(bench::Target target, std::string key) : target_(std::move(target)), key_(std::move(key)) {}
  std::string head(const HttpCall& call) const;
  net::Awaitable<void> exchange(const HttpCall& call);
  net::Awaitable<bool> read_answer(const HttpCall& call);
  net::Awaitable<void> watch(const HttpCall& call);
  bool take(std::string_view bytes, const HttpCall& call);

  const bench::Target target_;
  const std::string key_;
  boost::asio::io_context loop_{1};
  net::Timer watch_timer_{loop_.get_executor()};
  bench::ConnectionPtr connection_;
  const RealClock clock_;
  // Of the call that is going on.
  bench::ResponseReader reader_;
  HttpAnswer answer_;
  std::string failure_;
  bool ended_ = false;
};

// POST {"model": NAME} to a server: the body of a 200. Errors say what kept it from coming (unavailable), or what the
// server said (invalid_request).
Result<std::string> ask_about_model(const std::string& url, const std::string& key, const std::string& path,
                                    std::string_view model, Duration timeout);

// What a server says in the body of a refusal.
std::string message_of(const HttpAnswer& answer);

}  // namespace chasqui::cli
