#include "net/frame_scanner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace chasqui::net {
namespace {

constexpr std::size_t kLengthBytes = 4;

std::size_t read_length(std::string_view bytes) {
  std::size_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

}  // namespace

std::size_t FrameScanner::feed(std::string_view bytes) {
  CHECK(state_ == State::partial);
  std::size_t taken = 0;
  if (mode_ != Mode::lines && !in_body_) taken = feed_lead(bytes);
  if (state_ != State::partial) return taken;
  if (in_body_) return taken + feed_body(bytes.substr(taken));
  if (mode_ == Mode::lines) return taken + feed_line(bytes.substr(taken));
  return taken;
}

std::size_t FrameScanner::feed_lead(std::string_view bytes) {
  const std::size_t taken = std::min(bytes.size(), kLengthBytes - lead_.size());
  lead_.append(bytes.substr(0, taken));
  if (lead_.size() < kLengthBytes) return taken;
  if (mode_ == Mode::unknown) mode_ = lead_.back() == '\0' ? Mode::frames : Mode::lines;
  if (mode_ == Mode::lines) return taken;
  length_ = read_length(lead_);
  lead_.clear();
  if (length_ > limits_.frame_bytes) {
    state_ = State::too_large;
    return taken;
  }
  in_body_ = true;
  // Costs address space, not memory, and saves copying a long one while it grows.
  body_.reserve(length_);
  return taken;
}

std::size_t FrameScanner::feed_body(std::string_view bytes) {
  const std::size_t taken = std::min(bytes.size(), length_ - body_.size());
  body_.append(bytes.substr(0, taken));
  if (body_.size() == length_) state_ = State::complete;
  return taken;
}

std::size_t FrameScanner::feed_line(std::string_view bytes) {
  const std::string lead = std::exchange(lead_, {});
  const std::size_t of_lead = add_to_line(lead);
  lead_ = lead.substr(of_lead);
  return state_ == State::partial ? add_to_line(bytes) : 0;
}

std::size_t FrameScanner::add_to_line(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  const std::string_view part = bytes.substr(0, end);
  if (body_.size() + part.size() > limits_.line_bytes) {
    state_ = State::too_large;
    return 0;
  }
  body_.append(part);
  if (end == std::string_view::npos) return part.size();
  if (!body_.empty() && body_.back() == '\r') body_.pop_back();
  state_ = State::complete;
  return part.size() + 1;
}

void FrameScanner::settle() {
  if (unsettled()) mode_ = Mode::lines;
}

bool FrameScanner::end() {
  if (mode_ == Mode::unknown) mode_ = Mode::lines;
  return mode_ == Mode::lines && inside();
}

void FrameScanner::drop() {
  in_body_ = false;
  lead_.clear();
  std::string().swap(body_);
}

std::string FrameScanner::take() {
  CHECK(state_ == State::complete);
  state_ = State::partial;
  in_body_ = false;
  return std::exchange(body_, {});
}

}  // namespace chasqui::net
