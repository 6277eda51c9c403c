// Memory for large, long-lived bytes. From kOwnMapping on it is a mapping of its own, which goes back to the system
// when it is freed: in malloc's arenas such pieces leave gaps between those that stay, and the server seems to grow for
// hours. Not cleared, whatever the size. Movable; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace chasqui {

class Pages {
 public:
  static constexpr std::size_t kOwnMapping = 64 * 1024;

  // Throws std::bad_alloc when the system has no more.
  explicit Pages(std::size_t size);
  // Nothing when the system has no more.
  static std::optional<Pages> if_there_are(std::size_t size);
  // Says that it has so many bytes, and has none: for what is only counted. REQUIRES: they are never touched
  static Pages hollow(std::size_t size) { return Pages(size, nullptr); }

  std::span<std::byte> bytes() { return {bytes_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    std::size_t size = 0;
    void operator()(std::byte* bytes) const;
  };

  Pages(std::size_t size, std::byte* bytes) : bytes_(bytes, Free{size}), size_(size) {}

  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_;
};

}  // namespace chasqui
