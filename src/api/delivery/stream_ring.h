// The last bytes of a stream, under their offsets from its beginning. Bounded: what is older is overwritten. And the
// ids of events: the offset behind the event, so that an id and a count of bytes say the same. One thread; no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace chasqui {

class StreamRing {
 public:
  explicit StreamRing(std::size_t capacity) : capacity_(capacity) {}

  void append(std::string_view bytes);
  // As if `bytes` were the last of `end` bytes that were appended. REQUIRES: nothing was, bytes.size() ≤ end
  void go_on(std::uint64_t end, std::string_view bytes);

  // Keeps no more than so many bytes from now on, the last ones. Does nothing where it is smaller. REQUIRES: not 0
  void shrink(std::size_t capacity);

  // Offsets of the first byte that is left, and behind the last one.
  std::uint64_t begin() const { return end_ - bytes_.size(); }
  std::uint64_t end() const { return end_; }

  // Appends at most `max` bytes from `from` on to `out`. REQUIRES: begin() <= from <= end()
  void copy(std::uint64_t from, std::size_t max, std::string& out) const;

 private:
  std::size_t place(std::uint64_t offset, std::size_t capacity) const {
    return static_cast<std::size_t>((offset - start_) % capacity);
  }

  std::size_t capacity_;
  std::string bytes_;        // grows to capacity_, then is a ring
  std::uint64_t start_ = 0;  // bytes before that one were never here
  std::uint64_t end_ = 0;    // byte n stands at place(n, capacity_)
};

// Appends `frames`, whole server-sent events, to `out`, each with `id: N` as its last line; N is the offset behind it
// when the first of them begins at `start`. Comments get none.
void append_with_ids(std::string_view frames, std::uint64_t start, std::string& out);

}  // namespace chasqui
