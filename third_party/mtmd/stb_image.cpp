// stb_image with the formats that people send, and with a budget for each allocation.
#include <cstddef>
#include <cstdlib>

#include "stb_budget.h"

namespace chasqui {

thread_local std::size_t stb_bytes_max = 0;

}  // namespace chasqui

namespace {

void* allocate(std::size_t bytes) { return bytes <= chasqui::stb_bytes_max ? std::malloc(bytes) : nullptr; }

void* reallocate(void* memory, std::size_t bytes) {
  return bytes <= chasqui::stb_bytes_max ? std::realloc(memory, bytes) : nullptr;
}

}  // namespace

#define STBI_MALLOC(bytes) allocate(bytes)
#define STBI_REALLOC(memory, bytes) reallocate(memory, bytes)
#define STBI_FREE(memory) std::free(memory)
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_GIF
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STB_IMAGE_IMPLEMENTATION
#include "stb/stb_image.h"
