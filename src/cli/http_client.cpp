#include "cli/http_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/json.hpp>

#include "base/json_writer.h"

namespace chasqui::cli {
namespace {

constexpr Duration kWatchEvery = milliseconds(50);

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::open(const std::string& url, std::string key) {
  auto target = bench::parse_target(url);
  if (!target) return target.error();
  std::unique_ptr<HttpClient> client(new HttpClient(std::move(*target), std::move(key)));
  const auto endpoint = bench::resolve(client->target_, client->loop_);
  if (!endpoint) return endpoint.error();
  client->connection_ = std::make_shared<bench::Connection>(client->loop_.get_executor(), *endpoint);
  return client;
}

std::string HttpClient::head(const HttpCall& call) const {
  std::string text =
      call.method + ' ' + target_.base + call.path + " HTTP/1.1\r\nHost: " + target_.host_header + "\r\n";
  if (!key_.empty()) text += "Authorization: Bearer " + key_ + "\r\n";
  if (!call.body.empty()) {
    text += "Content-Type: " + call.type + "\r\nContent-Length: " + std::to_string(call.body.size()) + "\r\n";
  }
  return text + "\r\n";
}

bool HttpClient::take(std::string_view bytes, const HttpCall& call) {
  while (!bytes.empty() && !reader_.done() && !reader_.failed()) {
    const std::string_view piece = reader_.take(bytes);
    if (piece.empty()) continue;
    if (call.piece && reader_.status() == 200) {
      call.piece(piece);
    } else if (answer_.body.size() + piece.size() <= kBodyMax) {
      answer_.body += piece;
    } else {
      return false;
    }
  }
  return !reader_.failed();
}

// False when the connection broke before any answer.
net::Awaitable<bool> HttpClient::read_answer(const HttpCall& call) {
  bool answered = false;
  while (!reader_.done()) {
    const std::string_view bytes = co_await connection_->read();
    if (bytes.empty()) {
      if (!reader_.close()) failure_ = "the server closed the connection";
      co_return answered;
    }
    answered = true;
    if (!take(bytes, call)) {
      failure_ = "the server does not speak HTTP as it should";
      co_return true;
    }
  }
  co_return true;
}

net::Awaitable<void> HttpClient::exchange(const HttpCall& call) {
  const std::string bytes = head(call) + call.body;
  // A kept connection that the server closed while it was idle says nothing about the server: once more on a new one.
  for (int tries = connection_->is_open() ? 2 : 1; tries > 0; --tries) {
    reader_ = {};
    failure_.clear();
    const bool connected = co_await connection_->open();
    if (!connected) {
      failure_ = "no server listens there";
      break;
    }
    co_await connection_->write(bytes);  // when that breaks off, the server may have said why
    const bool answered = co_await read_answer(call);
    if (answered || answer_.stopped || connection_->timed_out()) break;
    connection_->close();
  }
  ended_ = true;
}

net::Awaitable<void> HttpClient::watch(const HttpCall& call) {
  while (!ended_) {
    watch_timer_.expires_after(kWatchEvery);
    co_await watch_timer_.async_wait(net::kAwait);
    if (ended_ || !call.stopped()) continue;
    answer_.stopped = true;
    connection_->close();
    co_return;
  }
}

Result<HttpAnswer> HttpClient::call(const HttpCall& call) {
  answer_ = {};
  ended_ = false;
  std::exception_ptr lost;
  const bool limited = call.timeout > Duration::zero();
  if (limited) connection_->set_deadline(clock_.now() + call.timeout);
  boost::asio::co_spawn(loop_, exchange(call), [this, &lost](const std::exception_ptr& thrown) {
    lost = thrown;
    ended_ = true;
    connection_->clear_deadline();
    watch_timer_.cancel();
  });
  if (call.stopped) {
    boost::asio::co_spawn(loop_, watch(call), [](const std::exception_ptr&) {});
  }
  loop_.restart();
  loop_.run();
  CHECK(!lost, "the coroutine of a request threw");
  answer_.status = reader_.status();
  if (answer_.stopped || !failure_.empty() || !reader_.keeps_alive()) {
    connection_->close();
  } else {
    connection_->mark_used();
  }
  if (answer_.stopped) return std::move(answer_);
  if (connection_->timed_out()) return Error{ErrorCode::unavailable, target_.host_header + ": no answer in time", {}};
  if (!failure_.empty()) {
    const std::string where = target_.socket_path.empty() ? target_.host_header : target_.socket_path;
    return Error{ErrorCode::unavailable, where + ": " + failure_, {}};
  }
  return std::move(answer_);
}

Result<std::string> ask_about_model(const std::string& url, const std::string& key, const std::string& path,
                                    std::string_view model, Duration timeout) {
  auto http = HttpClient::open(url, key);
  if (!http) return http.error();
  HttpCall call{"POST", path, "{\"model\":"};
  append_json_string(call.body, model);
  call.body += '}';
  call.timeout = timeout;
  auto answer = (*http)->call(call);
  if (!answer) return answer.error();
  if (answer->status != 200) return Error{ErrorCode::invalid_request, message_of(*answer), {}};
  return std::move(answer->body);
}

std::string message_of(const HttpAnswer& answer) {
  const std::string status = "the server says " + std::to_string(answer.status);
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(answer.body, error);
  if (error || !value.is_object()) return status;
  const boost::json::value* said = value.get_object().if_contains("error");
  if (said != nullptr && said->is_string()) return status + ": " + std::string(said->get_string());  // as Ollama has it
  if (said == nullptr || !said->is_object()) return status;
  const boost::json::value* text = said->get_object().if_contains("message");
  if (text == nullptr || !text->is_string()) return status;
  return status + ": " + std::string(text->get_string().data(), text->get_string().size());
}

}  // namespace chasqui::cli
