// Counts what is allocated through it, so that an index can say exactly what it takes. Owned by what it counts for; can
// be chained, then each level knows its own sum. Worker thread only.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace chasqui {

class CountedMemory final : public std::pmr::memory_resource {
 public:
  explicit CountedMemory(std::pmr::memory_resource* upstream) : upstream_(upstream) {}
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  std::size_t bytes() const { return bytes_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* block = upstream_->allocate(bytes, alignment);
    bytes_ += bytes;
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    upstream_->deallocate(block, bytes, alignment);
    bytes_ -= bytes;
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* const upstream_;
  std::size_t bytes_ = 0;
};

}  // namespace chasqui
