// Replaces libllama's zeroing of large buffers in host memory, through the linker's --wrap (CMakeLists.txt). The KV
// cache of a context is as large as its slots may ever become, and writing zeros into all of it is the only thing that
// makes the system commit memory for cells that no request ever uses. Anonymous pages that are given back read as
// zeros, so giving them back has the same effect, in microseconds. Any thread; of one buffer, one at a time, as in
// libllama.
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>

#include "ggml-backend.h"

extern "C" {

void __real_ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, std::uint8_t value);

void __wrap_ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, std::uint8_t value);

void __wrap_ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
  // malloc takes what is larger than 32 MiB straight from the system. Less is not worth it.
  constexpr std::size_t kLeast = std::size_t{64} << 20;
  const std::size_t size = ggml_backend_buffer_get_size(buffer);
  if (value != 0 || size < kLeast || !ggml_backend_buffer_is_host(buffer)) {
    return __real_ggml_backend_buffer_clear(buffer, value);
  }
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(ggml_backend_buffer_get_base(buffer));
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + size) / page * page;
  // Fails for memory that is locked or a file's, for instance: then zeros are written after all.
  if (madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) {
    return __real_ggml_backend_buffer_clear(buffer, value);
  }
  std::memset(reinterpret_cast<void*>(begin), 0, first - begin);
  std::memset(reinterpret_cast<void*>(last), 0, begin + size - last);
}

}  // extern "C"
#endif
