// What the fuzz targets share. Each of them is one program: tools/fuzz.py builds it with libFuzzer and sanitizers. A
// target that finds something aborts; tools/fuzz.py keeps the input, which becomes a file of the corpus with the fix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/thread_time.h"

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

// An input that computes for longer has found something, like one that crashes. Time of the thread, so that a machine
// with other work finds nothing: half a second is a hundred times what the longest known input takes under sanitizers.
class TimeLimit {
 public:
  TimeLimit() : end_(thread_time() + milliseconds(500)) {}
  ~TimeLimit() { must(thread_time() < end_, "an input is read in bounded time"); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  const Duration end_;
};

}  // namespace chasqui

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
