#include "api/delivery/stream_ring.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace chasqui {

void StreamRing::append(std::string_view bytes) {
  if (bytes.size() > capacity_) {
    end_ += bytes.size() - capacity_;
    bytes.remove_prefix(bytes.size() - capacity_);
    bytes_.resize(capacity_);  // all of it is overwritten
  }
  while (!bytes.empty()) {
    const std::size_t at = static_cast<std::size_t>(place(end_, capacity_));
    const std::size_t part = std::min(bytes.size(), capacity_ - at);
    if (bytes_.size() < at + part) bytes_.resize(at + part);
    std::copy_n(bytes.data(), part, bytes_.data() + at);
    end_ += part;
    bytes.remove_prefix(part);
  }
}

void StreamRing::go_on(std::uint64_t end, std::string_view bytes) {
  CHECK(end_ == 0 && bytes.size() <= end);
  start_ = end_ = end - bytes.size();
  append(bytes);
}

void StreamRing::shrink(std::size_t capacity) {
  if (capacity >= capacity_) return;
  if (bytes_.size() > capacity) {
    std::string last;
    last.reserve(capacity);
    copy(end_ - capacity, capacity, last);
    const auto at = static_cast<std::ptrdiff_t>(place(end_, capacity));  // of the first of them
    std::rotate(last.begin(), last.end() - at, last.end());
    bytes_ = std::move(last);
  }
  capacity_ = capacity;
}

void StreamRing::copy(std::uint64_t from, std::size_t max, std::string& out) const {
  CHECK(from >= begin() && from <= end_);
  std::size_t left = static_cast<std::size_t>(std::min<std::uint64_t>(max, end_ - from));
  while (left > 0) {
    const std::size_t at = static_cast<std::size_t>(place(from, capacity_));
    const std::size_t part = std::min(left, capacity_ - at);
    out.append(bytes_, at, part);
    from += part;
    left -= part;
  }
}

void append_with_ids(std::string_view frames, std::uint64_t start, std::string& out) {
  const std::size_t before = out.size();
  while (!frames.empty()) {
    const std::size_t gap = frames.find("\n\n");
    CHECK(gap != std::string_view::npos);
    const std::string_view event = frames.substr(0, gap);
    frames.remove_prefix(gap + 2);
    out += event;
    if (!event.starts_with(':')) {
      out += "\nid: ";
      const std::uint64_t base = start + (out.size() - before) + 2;
      std::uint64_t id = base + 1;
      while (id != base + std::to_string(id).size()) ++id;  // its own digits count, too
      out += std::to_string(id);
    }
    out += "\n\n";
  }
}

}  // namespace chasqui
