#include "net/connection_exchange.h"

#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "net/gzip.h"
#include "net/memory_room.h"
#include "net/offload.h"

namespace chasqui::net {
namespace {

// Of a large answer; the pool compresses those that are larger.
constexpr std::size_t kPiecesOnLoop = 8;
constexpr std::size_t kLongPieces = 32;  // take ten milliseconds

// So clients that stop within a large body do not keep the small ones of others out.
bool give_up_costliest(HttpShared& shared) {
  std::vector<HttpConnection*> senders;
  std::vector<MemoryHolding> held;
  for (HttpConnection* const one : shared.connections) {
    const auto holding = one->body_on_its_way();
    if (!holding) continue;
    senders.push_back(one);
    held.push_back(*holding);
  }
  const auto found = costliest(held, shared.limits.body_fresh_time, shared.loop.now());
  if (found) senders[*found]->give_up_body();
  return found.has_value();
}

}  // namespace

ConnectionExchange::ConnectionExchange(HttpConnection& connection) : connection_(connection) {
  HttpShared& shared = connection_.shared();
  ++shared.exchanges;
  shared.loop.metrics().exchanges_running.add(1);
}

ConnectionExchange::~ConnectionExchange() {
  HttpShared& shared = connection_.shared();
  --shared.exchanges;
  shared.loop.metrics().exchanges_running.add(-1);
  body_was_read();
}

void ConnectionExchange::body_was_read() {
  HttpShared& shared = connection_.shared();
  const std::size_t bytes = std::exchange(accounted_, 0);
  shared.body_bytes -= bytes;
  shared.loop.metrics().body_bytes.add(-static_cast<std::int64_t>(bytes));
}

void ConnectionExchange::account_body() {
  HttpShared& shared = connection_.shared();
  const std::size_t grown = request_.body.size() - accounted_;
  accounted_ += grown;
  shared.body_bytes += grown;
  shared.loop.metrics().body_bytes.add(static_cast<std::int64_t>(grown));
  while (grown > 0 && !refused() && shared.body_bytes > shared.limits.bodies_bytes) {
    if (!give_up_costliest(shared)) refuse_body("The server holds too many large requests; try again later.");
  }
}

void ConnectionExchange::refuse_body(std::string_view why) {
  HttpResponse response = connection_.shared().router.error(503, why);
  // When the others end is not known here; their bodies are read within seconds.
  response.headers.add("Retry-After", "1");
  response.headers.add("Retry-After-Ms", "1000");
  close_after();  // what follows is the rest of the body, no request
  refuse(std::move(response));
  std::string().swap(request_.body);
  body_was_read();
}

void ConnectionExchange::take_route(Router::Route route) {
  handler_ = route.handler;
  refusal_ = std::move(route.refusal);
  set_params(std::move(route.params));
  extra_ = std::move(route.headers);
}

void ConnectionExchange::add_response_header(std::string_view name, std::string_view value) {
  CHECK(!response_started());
  extra_.add(name, value);
}

bool ConnectionExchange::client_gone() {
  connection_.watch();
  return connection_.gone();
}

void ConnectionExchange::on_client_gone(std::function<void()> callback) {
  if (connection_.gone()) {
    if (callback) callback();
    return;
  }
  connection_.set_gone_callback(std::move(callback));
  connection_.watch();
}

std::string ConnectionExchange::head(int status, const HttpHeaders& headers) {
  HttpShared& shared = connection_.shared();
  shared.loop.metrics().count_response(status);
  if (shared.leaving || !request_.keep_alive) close_after_ = true;
  silent_ = request_.method == HttpMethod::head || !status_has_body(status);

  std::string out;
  out.reserve(512);
  append_status_line(out, status);
  for (std::size_t i = 0; i < shared.default_headers.size(); ++i) {
    const auto [name, value] = shared.default_headers[i];
    if (!headers.has(name)) append_header(out, name, value);
  }
  append_headers(out, headers);
  shared.router.add_answer_headers(request_, extra_);
  append_headers(out, extra_);
  append_header(out, "Date", shared.date());
  return out;
}

// What a whole answer takes of the memory for those that are not read, while it is being sent.
class ConnectionExchange::Room {
 public:
  Room(HttpShared& shared, const AnswerOwner& owner, std::size_t bytes)
      : shared_(shared), owner_(owner), bytes_(shared.answers.take(owner, bytes) ? bytes : 0), taken_(bytes_ == bytes) {
    shared_.loop.metrics().answer_bytes.add(static_cast<std::int64_t>(bytes_));
  }
  ~Room() {
    if (taken_) shared_.answers.give_back(owner_, bytes_);
    shared_.loop.metrics().answer_bytes.add(-static_cast<std::int64_t>(bytes_));
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  bool taken() const { return taken_; }

 private:
  HttpShared& shared_;
  const AnswerOwner owner_;
  const std::size_t bytes_;
  const bool taken_;
};

bool ConnectionExchange::wants_gzip() const {
  const HttpShared& shared = connection_.shared();
  return shared.compressor != nullptr && request_.method != HttpMethod::head &&
         allows_gzip(request_.header("Accept-Encoding").value_or("")) &&
         shared.compressing < kSizeLimit<"compressions">;
}

// Up to some pieces here, with others' turns between them, so that most answers need not wait for the pool.
// `response` as it is where the pool is full.
Awaitable<void> ConnectionExchange::compress(HttpResponse& response) {
  HttpShared& shared = connection_.shared();
  ++shared.compressing;
  std::string out;
  if (response.body.size() > kPiecesOnLoop * GzipWriter::kPieceBytes) {
    // Owned by the job as well: the server may end while the pool still compresses.
    const auto text = std::make_shared<const std::string>(std::move(response.body));
    auto work = [text] { return gzip(*text); };
    OffloadTerms terms;
    terms.owner = owner_.id;
    terms.bytes = text->size();
    if (text->size() >= kLongPieces * GzipWriter::kPieceBytes) terms.can_wait = OffloadPool::kLong;
    Result<std::string> compressed = co_await shared.compressor->run(std::move(work), std::move(terms));
    if (compressed) {
      out = std::move(*compressed);
    } else {
      response.body = *text;
    }
    shared.loop.metrics().bytes_saved.add(compressed ? text->size() - std::min(text->size(), out.size()) : 0);
  } else {
    GzipWriter writer;
    const std::string_view text = response.body;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view piece = text.substr(at, GzipWriter::kPieceBytes);
      at += piece.size();
      writer.add(piece, at == text.size(), out);
      if (at < text.size()) co_await connection_.yield();
    }
    shared.loop.metrics().bytes_saved.add(text.size() - std::min(text.size(), out.size()));
  }
  --shared.compressing;
  if (out.empty()) co_return;
  response.body = std::move(out);
  response.headers.set("Content-Encoding", "gzip");
  shared.loop.metrics().answers_compressed.add();
}

Awaitable<bool> ConnectionExchange::respond(HttpResponse response) {
  CHECK(!response_started());
  body_was_read();
  HttpShared& shared = connection_.shared();
  const Room room(shared, owner_, response.body.size());
  if (!room.taken()) {
    shared.loop.metrics().answers_refused.add();
    response = shared.router.error(503, "Clients have not read too many large answers yet; try again later.");
    response.headers.add("Retry-After", "1");
    response.headers.add("Retry-After-Ms", "1000");
  }
  stage_ = Stage::done;
  if (is_worth_gzip(response.headers, response.body.size())) {
    response.headers.add("Vary", "Accept-Encoding");
    if (wants_gzip()) co_await compress(response);
  }
  std::string out = head(response.status, response.headers);
  if (status_has_body(response.status)) append_header(out, "Content-Length", std::to_string(response.body.size()));
  append_connection(out);
  SendBuffers buffers{out, silent_ ? std::string_view() : std::string_view(response.body)};
  const bool sent = co_await connection_.send(buffers);
  co_return sent;
}

void ConnectionExchange::append_connection(std::string& out) const {
  if (close_after_) {
    append_header(out, "Connection", "close");
  } else if (request_.version_minor == 0) {
    append_header(out, "Connection", "keep-alive");
  }
  out += "\r\n";
}

Awaitable<bool> ConnectionExchange::start_stream(int status, HttpHeaders headers) {
  CHECK(!response_started());
  stage_ = Stage::streaming;
  connection_.watch();
  std::string out = head(status, headers);
  if (status_has_body(status)) {
    chunked_ = request_.version_minor == 1;
    if (chunked_) append_header(out, "Transfer-Encoding", "chunked");
    // In HTTP/1.0 the end of the connection is the end of the body.
    if (!chunked_ && !silent_) close_after_ = true;
  }
  append_connection(out);
  SendBuffers buffers{out};
  const bool sent = co_await connection_.send(buffers);
  co_return sent;
}

// The chunk's size in hexadecimal and a line end, in a buffer of the exchange.
std::string_view ConnectionExchange::size_line(std::size_t size) {
  char* const begin = size_line_.data();
  char* end = std::to_chars(begin, begin + size_line_.size(), size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return {begin, static_cast<std::size_t>(end - begin)};
}

Awaitable<bool> ConnectionExchange::write_chunk(std::string_view data) {
  CHECK(stage_ == Stage::streaming);
  if (connection_.gone()) co_return false;
  if (!rest_.empty()) {
    const bool open = co_await send_rest();
    if (!open) co_return false;
  }
  if (data.empty() || silent_) co_return true;
  const std::string_view before = chunked_ ? size_line(data.size()) : std::string_view();
  SendBuffers buffers{before, data, chunked_ ? "\r\n" : ""};
  const bool sent = co_await connection_.send(buffers);
  co_return sent;
}

bool ConnectionExchange::write_now(std::string_view data) {
  if (connection_.gone()) return false;
  CHECK(stage_ == Stage::streaming && rest_.empty());
  if (data.empty() || silent_) return true;
  const std::string_view before = chunked_ ? size_line(data.size()) : std::string_view();
  SendBuffers buffers{before, data, chunked_ ? "\r\n" : ""};
  connection_.send_now(buffers);
  if (buffers.unsent() == 0) return true;
  if (connection_.gone()) return false;
  for (const auto& piece : buffers) rest_.append(static_cast<const char*>(piece.data()), piece.size());
  return false;
}

Awaitable<bool> ConnectionExchange::send_rest() {
  SendBuffers buffers{rest_};
  const bool sent = co_await connection_.send(buffers);
  std::string().swap(rest_);
  co_return sent;
}

Awaitable<bool> ConnectionExchange::finish_stream(std::string_view data) {
  CHECK(stage_ == Stage::streaming);
  stage_ = Stage::done;
  if (connection_.gone()) co_return false;
  if (!rest_.empty()) {
    const bool open = co_await send_rest();
    if (!open) co_return false;
  }
  if (silent_ || (!chunked_ && data.empty())) co_return true;
  const bool last_chunk = chunked_ && !data.empty();
  const std::string_view before = last_chunk ? size_line(data.size()) : std::string_view();
  SendBuffers buffers{before, data, last_chunk ? "\r\n" : "", chunked_ ? "0\r\n\r\n" : ""};
  const bool sent = co_await connection_.send(buffers);
  co_return sent;
}

}  // namespace chasqui::net
