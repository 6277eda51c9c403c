#include "base/freed_memory.h"

#include <atomic>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace chasqui {
namespace {

std::atomic<bool> large_body_noted{false};

}  // namespace

void note_large_body() { large_body_noted.store(true, std::memory_order_relaxed); }

bool take_large_body() { return large_body_noted.exchange(false, std::memory_order_relaxed); }

void give_back_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace chasqui
