#include "bench/response_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ascii.h"

namespace chasqui::bench {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::string_view ResponseReader::take(std::string_view& bytes) {
  while (!bytes.empty()) {
    switch (state_) {
      case State::done:
      case State::failed: return {};
      case State::sized: return take_counted(bytes, State::done);
      case State::chunk_bytes: return take_counted(bytes, State::chunk_end);
      case State::until_close: return std::exchange(bytes, {});
      default:
        if (take_line(bytes)) end_line();
    }
  }
  return {};
}

bool ResponseReader::close() {
  if (state_ == State::until_close) state_ = State::done;
  return state_ == State::done;
}

// True when line_ is complete, without its end.
bool ResponseReader::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  const std::size_t size = end == std::string_view::npos ? bytes.size() : end;
  line_ += bytes.substr(0, size);
  bytes.remove_prefix(std::min(size + 1, bytes.size()));
  if (line_.size() + head_size_ > kHeadMax) {
    state_ = State::failed;
    return false;
  }
  if (end == std::string_view::npos) return false;
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

std::string_view ResponseReader::take_counted(std::string_view& bytes, State next) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  const std::string_view piece = bytes.substr(0, size);
  bytes.remove_prefix(size);
  left_ -= size;
  if (left_ == 0) state_ = next;
  return piece;
}

void ResponseReader::end_line() {
  switch (state_) {
    case State::head: head_size_ += line_.size(), read_head_line(line_); break;
    case State::chunk_size: read_chunk_size(line_); break;
    case State::chunk_end: state_ = line_.empty() ? State::chunk_size : State::failed; break;
    case State::trailer:
      if (line_.empty()) state_ = State::done;
      break;
    default: break;
  }
  line_.clear();
}

void ResponseReader::read_head_line(std::string_view line) {
  if (std::exchange(first_line_, false)) {
    const bool http = line.starts_with("HTTP/1.") && line.size() >= 12;
    if (!http || std::from_chars(line.data() + 9, line.data() + 12, status_).ec != std::errc()) state_ = State::failed;
    keep_alive_ = http && line[7] == '1';
    return;
  }
  if (line.empty()) return end_head();
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (equals_ignoring_case(name, "content-length")) {
    has_length_ = true;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), left_);
    if (error != std::errc() || end != value.data() + value.size()) state_ = State::failed;
  } else if (equals_ignoring_case(name, "transfer-encoding")) {
    chunked_ = equals_ignoring_case(value, "chunked");
  } else if (equals_ignoring_case(name, "connection")) {
    keep_alive_ = equals_ignoring_case(value, "keep-alive") || (keep_alive_ && !equals_ignoring_case(value, "close"));
  } else if (equals_ignoring_case(name, "retry-after")) {
    retry_after_ = value;
  } else if (equals_ignoring_case(name, "retry-after-ms")) {
    retry_after_ms_ = value;
  }
}

void ResponseReader::end_head() {
  if (status_ >= 100 && status_ < 200) {  // another head follows
    first_line_ = true;
    return;
  }
  if (chunked_) {
    state_ = State::chunk_size;
  } else if (has_length_ || status_ == 204 || status_ == 304) {
    state_ = left_ > 0 ? State::sized : State::done;
  } else {
    state_ = State::until_close;
    keep_alive_ = false;
  }
}

void ResponseReader::read_chunk_size(std::string_view line) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
  if (error != std::errc()) {
    state_ = State::failed;
  } else {
    state_ = left_ > 0 ? State::chunk_bytes : State::trailer;
  }
}

}  // namespace chasqui::bench
