#include "net/http_parser.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"

namespace chasqui::net {
namespace {

// A chunk of any size costs its size line and two line ends; what goes beyond (leading zeros, extensions, trailers)
// may in total be as large as the headers.
constexpr std::size_t kChunkFraming = 16;
constexpr std::size_t kBodyReserve = 64 * 1024;

}  // namespace

// llhttp calls these; `data` is the parser.
struct ParserCallbacks {
  static HttpParser& parser(llhttp_t* p) { return *static_cast<HttpParser*>(p->data); }

  static int header_field(llhttp_t* p, const char* at, std::size_t n) {
    if (!parser(p).head_parsed_) parser(p).field_.append(at, n);  // later ones are trailers, which are not used
    return 0;
  }
  static int header_value(llhttp_t* p, const char* at, std::size_t n) {
    if (!parser(p).head_parsed_) parser(p).value_.append(at, n);
    return 0;
  }
  static int header_value_complete(llhttp_t* p) {
    HttpParser& self = parser(p);
    if (self.head_parsed_) return 0;
    while (self.value_.ends_with(' ') || self.value_.ends_with('\t')) self.value_.pop_back();
    self.request_.headers.add(self.field_, self.value_);
    self.field_.clear();
    self.value_.clear();
    return 0;
  }
  static int url(llhttp_t* p, const char* at, std::size_t n) {
    parser(p).request_.target.append(at, n);
    return 0;
  }
  static int headers_complete(llhttp_t* p) {
    parser(p).head_parsed_ = true;
    p->upgrade = 0;  // an offer to upgrade may be ignored, and is
    return HPE_PAUSED;
  }
  static int chunk_header(llhttp_t* p) {
    ++parser(p).chunk_count_;
    return 0;
  }
  static int body(llhttp_t* p, const char* at, std::size_t n) {
    HttpParser& self = parser(p);
    if (n > self.limits_.body_bytes - self.request_.body.size()) {
      self.refuse(413, "The request body is too large.");
      return -1;
    }
    self.request_.body.append(at, n);
    return 0;
  }
  static int message_complete(llhttp_t* p) {
    parser(p).state_ = HttpParser::State::complete;
    return HPE_PAUSED;
  }

  static const llhttp_settings_t& settings() {
    static const llhttp_settings_t all = [] {
      llhttp_settings_t s;
      llhttp_settings_init(&s);
      s.on_url = url;
      s.on_header_field = header_field;
      s.on_header_value = header_value;
      s.on_header_value_complete = header_value_complete;
      s.on_headers_complete = headers_complete;
      s.on_chunk_header = chunk_header;
      s.on_body = body;
      s.on_message_complete = message_complete;
      return s;
    }();
    return all;
  }
};

HttpParser::HttpParser(const HttpLimits& limits, HttpRequest& request)
    : limits_(limits), request_(request), scanner_(limits) {
  llhttp_init(&llhttp_, HTTP_REQUEST, &ParserCallbacks::settings());
  llhttp_.data = this;
}

void HttpParser::refuse(int status, std::string_view message) {
  state_ = State::refused;
  refusal_ = {status, message};
}

std::size_t HttpParser::feed(std::string_view bytes) {
  switch (state_) {
    case State::head: {
      const std::size_t taken = scanner_.feed(bytes);
      if (scanner_.state() == HeadScanner::State::refused) {
        refuse(scanner_.refusal().status, scanner_.refusal().message);
      } else if (scanner_.state() == HeadScanner::State::complete) {
        finish_head();
      }
      return taken;
    }
    case State::body: return chunked_ ? feed_chunked_body(bytes) : feed_sized_body(bytes);
    case State::head_done:
    case State::complete:
    case State::refused: break;
  }
  return 0;
}

void HttpParser::finish_head() {
  const std::string& head = scanner_.head();
  const llhttp_errno_t error = llhttp_execute(&llhttp_, head.data(), head.size());
  scanner_.release();
  if (error == HPE_PAUSED && head_parsed_) return check_head();
  if (error == HPE_INVALID_TRANSFER_ENCODING) return refuse(501, "Only the transfer encoding chunked is supported.");
  if (error == HPE_INVALID_CONTENT_LENGTH) return refuse(400, "Content-Length is malformed.");
  if (error == HPE_UNEXPECTED_CONTENT_LENGTH) {
    return refuse(400, "Content-Length may appear once, and not beside Transfer-Encoding.");
  }
  if (error == HPE_INVALID_URL) return refuse(400, "The request target is malformed.");
  refuse(400, "The request head is malformed.");
}

void HttpParser::check_head() {
  request_.version_minor = llhttp_.http_minor;
  request_.keep_alive = request_.version_minor == 1 ? (llhttp_.flags & F_CONNECTION_CLOSE) == 0
                                                    : (llhttp_.flags & F_CONNECTION_KEEP_ALIVE) != 0;
  request_.method = parse_http_method(llhttp_method_name(static_cast<llhttp_method_t>(llhttp_.method))).value();

  const std::size_t hosts = request_.headers.count("Host");
  if (hosts > 1 || (hosts == 0 && request_.version_minor == 1)) return refuse(400, "There must be one Host header.");
  if (hosts == 1 && !is_authority(*request_.headers.get("Host"))) return refuse(400, "The Host header is malformed.");
  if (!check_transfer_encoding()) return;
  const auto coding = request_.headers.get("Content-Encoding");
  if (coding && !coding->empty() && !equals_ignoring_case(*coding, "identity")) {
    return refuse(415, "Content-Encoding must be left out or identity: bodies are taken as they are, not compressed.");
  }
  if (!take_target()) return;
  if (!chunked_ && llhttp_.content_length > limits_.body_bytes) return refuse(413, "The request body is too large.");

  if (const auto expect = request_.headers.get("Expect"); expect && request_.version_minor == 1) {
    if (!equals_ignoring_case(*expect, "100-continue")) return refuse(417, "Only 100-continue can be expected.");
    expects_continue_ = true;
  }
  body_left_ = llhttp_.content_length;
  state_ = State::head_done;
}

bool HttpParser::check_transfer_encoding() {
  const auto encodings = request_.headers.all("Transfer-Encoding");
  if (encodings.empty()) return true;
  if (request_.headers.has("Content-Length")) {
    refuse(400, "Content-Length may not appear beside Transfer-Encoding.");
  } else if (request_.version_minor == 0 || encodings.size() != 1 || !equals_ignoring_case(encodings[0], "chunked")) {
    refuse(501, "Only the transfer encoding chunked is supported, and not in HTTP/1.0.");
  } else if ((llhttp_.flags & F_CHUNKED) == 0) {
    refuse(400, "Transfer-Encoding is malformed.");  // we and llhttp must not read it in two ways
  } else {
    chunked_ = true;
  }
  return chunked_;
}

// The absolute form is for proxies, but every server has to take it. The host in it is not checked here.
void HttpParser::take_absolute_target() {
  const std::string_view target = request_.target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() || !equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    const std::string_view authority = target.substr(scheme.size(), end - scheme.size());
    if (authority.empty() || !is_authority(authority)) return;
    const bool has_path = end < target.size() && target[end] == '/';
    request_.target = (has_path ? "" : "/") + std::string(target.substr(end));
    return;
  }
}

bool HttpParser::take_target() {
  if (request_.target == "*" && request_.method == HttpMethod::options) {
    request_.path = "*";
    return true;
  }
  take_absolute_target();
  if (!request_.target.starts_with('/')) {
    refuse(400, "The request target must be a path that starts with a slash.");
    return false;
  }
  // A client keeps the fragment to itself; where one arrives, an attacker tests how we and a proxy differ.
  auto path = percent_decode(request_.raw_path());
  if (!path || request_.target.find('#') != std::string::npos) {
    refuse(400, "The request target is malformed.");
    return false;
  }
  request_.path = std::move(*path);
  return true;
}

void HttpParser::accept_body() {
  CHECK(state_ == State::head_done);
  if (!chunked_ && body_left_ == 0) {
    state_ = State::complete;
    return;
  }
  state_ = State::body;
  if (chunked_) {
    llhttp_resume(&llhttp_);
  } else {
    request_.body.reserve(std::min(body_left_, kBodyReserve));  // not all of it: the length is only a claim
  }
}

std::size_t HttpParser::feed_sized_body(std::string_view bytes) {
  const std::size_t taken = std::min(bytes.size(), body_left_);
  request_.body.append(bytes.substr(0, taken));
  body_left_ -= taken;
  if (body_left_ == 0) state_ = State::complete;
  return taken;
}

std::size_t HttpParser::refuse_chunks(std::size_t taken) {
  refuse(400, "The chunked body is malformed.");
  return taken;
}

std::size_t HttpParser::feed_chunked_body(std::string_view bytes) {
  const llhttp_errno_t error = llhttp_execute(&llhttp_, bytes.data(), bytes.size());
  std::size_t taken = bytes.size();
  if (error == HPE_PAUSED && llhttp_get_error_pos(&llhttp_) != nullptr) {
    taken = static_cast<std::size_t>(llhttp_get_error_pos(&llhttp_) - bytes.data());
  }
  // llhttp takes a bare LF for the empty line behind the last chunk, and a proxy may not.
  const char before_last = taken >= 2 ? bytes[taken - 2] : last_byte_;
  if (state_ == State::complete && before_last != '\r') return refuse_chunks(taken);
  if (taken > 0) last_byte_ = bytes[taken - 1];
  chunked_bytes_ += taken;
  if (error != HPE_OK && error != HPE_PAUSED) {
    return state_ == State::refused ? taken : refuse_chunks(taken);
  }
  const std::size_t framing = chunked_bytes_ - request_.body.size();
  if (framing > limits_.header_bytes + kChunkFraming * chunk_count_) {
    refuse(431, "Chunk extensions and trailers are too large.");
  }
  return taken;
}

}  // namespace chasqui::net
