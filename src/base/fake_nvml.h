// The library tests/libraries/fake_nvml.c, as tests see it: two GPUs with counters that a test sets.
#pragma once

#include <atomic>
#include <string>

#include "base/error.h"
#include "base/shared_library.h"

namespace chasqui {

inline std::string fake_nvml_path(const std::string& kind) {
  return CHASQUI_BINARY_DIR "/test_libraries/nvml_" + kind + ".so";
}

struct FakeNvml {
  struct Gpu {
    const char* address;
    std::atomic<unsigned long long> millijoules;
    std::atomic<int> result;
  };
  Gpu gpus[2];
  std::atomic<int> begun;
  std::atomic<int> readings;

  // Of the good kind, as it was at first; one for the process.
  static FakeNvml& reset() {
    SharedLibrary library({fake_nvml_path("good").c_str()});
    FakeNvml* (*get)() = nullptr;
    CHECK(library.loaded(), library.why());
    library.find("fake_nvml", get);
    FakeNvml& out = *get();
    for (Gpu& gpu : out.gpus) {
      gpu.millijoules = 1'000'000;
      gpu.result = 0;
    }
    out.readings = 0;
    return out;
  }
};

}  // namespace chasqui
