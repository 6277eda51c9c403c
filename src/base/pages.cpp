#include "base/pages.h"

#include <new>

#include <sys/mman.h>

namespace chasqui {
namespace {

// Null: the system has no such mapping; small ones throw, as every small piece of memory. The caller that asks for
// bytes is about to write all of them, so the faults are taken at once, which is cheaper.
std::byte* take_if_there(std::size_t size) {
  if (size < Pages::kOwnMapping) return std::make_unique_for_overwrite<std::byte[]>(size).release();
  void* const found = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return found == MAP_FAILED ? nullptr : static_cast<std::byte*>(found);
}

std::byte* take(std::size_t size) {
  std::byte* const found = take_if_there(size);
  if (found == nullptr) throw std::bad_alloc();
  return found;
}

}  // namespace

Pages::Pages(std::size_t size) : Pages(size, take(size)) {}

std::optional<Pages> Pages::if_there_are(std::size_t size) {
  std::byte* const found = take_if_there(size);
  if (found == nullptr) return std::nullopt;
  return Pages(size, found);
}

void Pages::Free::operator()(std::byte* bytes) const {
  if (size < kOwnMapping) {
    std::unique_ptr<std::byte[]>(bytes).reset();
  } else {
    ::munmap(bytes, size);
  }
}

}  // namespace chasqui
