// What the fuzz targets share. Each of them is one program: tools/fuzz.py builds it with libFuzzer and sanitizers. A
// target that finds something aborts; tools/fuzz.py keeps the input, which becomes a file of the corpus with the fix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace chasqui {

inline std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// What must hold whatever the input.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace chasqui

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
