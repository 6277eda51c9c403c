#include "net/head_scanner.h"

#include <algorithm>

#include "base/ascii.h"
#include "net/http_request.h"

namespace chasqui::net {
namespace {

// Some clients send a stray line end after a body; more than a few is an attack on patience.
constexpr std::size_t kBlankLinesBefore = 2;

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return is_ascii_word_or(kOthers, c);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

}  // namespace

std::size_t HeadScanner::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && state_ == State::more) take(bytes[taken++]);
  return taken;
}

void HeadScanner::refuse(int status, std::string_view message) {
  state_ = State::refused;
  refusal_ = {status, message};
}

void HeadScanner::take(char byte) {
  if (after_cr_ && byte != '\n') return refuse(400, "A carriage return must be followed by a line feed.");
  if (byte == '\r') {
    after_cr_ = true;
    return;
  }
  if (byte == '\n') {
    if (!after_cr_) return refuse(400, "Lines must end with carriage return and line feed.");
    after_cr_ = false;
    return end_line();
  }
  if (is_control(byte)) return refuse(400, "There is a control character in the request's head.");

  const bool first_of_line = head_.size() == line_start_;
  const bool in_headers = header_start_ > 0;
  if (in_headers && first_of_line) {
    if (byte == ' ' || byte == '\t') return refuse(400, "Folded header lines are not allowed.");
    if (byte == ':') return refuse(400, "A header needs a name.");
    if (++header_count_ > limits_.header_count) return refuse(431, "There are too many headers.");
  }
  head_ += byte;
  if (in_headers) {
    if (head_.size() - header_start_ > limits_.header_bytes) return refuse(431, "The headers are too large.");
  } else if (head_.size() > limits_.request_line_bytes) {
    return refuse(414, "The request line is too long.");
  }
}

void HeadScanner::end_line() {
  const bool empty_line = head_.size() == line_start_;
  if (header_start_ == 0) {
    if (empty_line) {
      if (++blank_lines_ > kBlankLinesBefore) refuse(400, "There is no request line.");
      return;
    }
    if (!check_request_line()) return;
  }
  head_ += "\r\n";
  line_start_ = head_.size();
  if (header_start_ == 0) header_start_ = line_start_;
  if (empty_line) state_ = State::complete;
}

// method SP target SP HTTP/digit.digit. The target's characters are llhttp's to judge.
bool HeadScanner::check_request_line() {
  const std::string_view line(head_);
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', std::min(first, line.size() - 1) + 1);
  const std::string_view method = line.substr(0, first);
  if (!std::all_of(method.begin(), method.end(), is_token_char) || method.empty()) {
    refuse(400, "The request line is malformed.");
    return false;
  }
  if (first == std::string_view::npos || second == std::string_view::npos || second == first + 1) {
    refuse(400, "The request line must be: method, target, version.");
    return false;
  }
  const std::string_view version = line.substr(second + 1);
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' ||
      !is_digit(version[7])) {
    refuse(400, "The HTTP version is malformed.");
    return false;
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    refuse(505, "This server speaks HTTP/1.1 and HTTP/1.0.");
    return false;
  }
  if (!parse_http_method(method)) {
    refuse(501, "This method is not supported.");
    return false;
  }
  return true;
}

}  // namespace chasqui::net
