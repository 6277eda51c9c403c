// Asks the system for pages of 2 MiB where libllama keeps weights in memory of their own (what is repacked for some
// kernels, or read without a mapping), through the linker's --wrap (CMakeLists.txt): libllama says of each buffer that
// it is for weights before it fills it. A token reads all of them from end to end, and on pages of 4 KiB the processor
// looks up 512 times as many addresses and fetches ahead no farther than to the end of each
// (docs/decisions/large_pages.md). Only pages that lie within the buffer as a whole, so that it takes no more memory;
// where the system has none, nothing happens. Any thread; of one buffer, one at a time, as in libllama.
#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>

#include "ggml-backend.h"

extern "C" {

void __real_ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, ggml_backend_buffer_usage usage);

void __wrap_ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, ggml_backend_buffer_usage usage);

void __wrap_ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, ggml_backend_buffer_usage usage) {
  __real_ggml_backend_buffer_set_usage(buffer, usage);
  // ggml names no device for plain memory.
  ggml_backend_dev_t device = ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer));
  if (device != nullptr && ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) return;
  const std::size_t size = ggml_backend_buffer_get_size(buffer);
  if (usage != GGML_BACKEND_BUFFER_USAGE_WEIGHTS || size == 0) return;
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(ggml_backend_buffer_get_base(buffer));
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + size) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // extern "C"
#endif
