#include "base/pages.h"

#include <new>

#include <sys/mman.h>

namespace chasqui {
namespace {

// The caller that asks for bytes is about to write all of them, so the faults are taken at once, which is cheaper.
std::byte* take(std::size_t size) {
  if (size < Pages::kOwnMapping) return std::make_unique_for_overwrite<std::byte[]>(size).release();
  void* const found = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (found == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(found);
}

}  // namespace

Pages::Pages(std::size_t size) : Pages(size, take(size)) {}

void Pages::Free::operator()(std::byte* bytes) const {
  if (size < kOwnMapping) {
    std::unique_ptr<std::byte[]>(bytes).reset();
  } else {
    ::munmap(bytes, size);
  }
}

}  // namespace chasqui
