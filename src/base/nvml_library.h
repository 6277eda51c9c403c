// NVIDIA's NVML, which comes with the driver: loaded when a model is on a GPU, and never required. The functions are
// declared here, as its ABI has them, so that no build needs its header. Opened and used by one thread.
#pragma once

#include "base/error.h"

namespace chasqui {

struct NvmlDevice;  // NVML's own

struct NvmlLibrary {
  static constexpr const char* kName = "libnvidia-ml.so.1";
  static constexpr int kSuccess = 0;

  // All but text_of return kSuccess, or what text_of has words for.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*text_of)(int result) = nullptr;
  // `address` on the PCI bus: "0000:c1:00.0".
  int (*device_at)(const char* address, NvmlDevice** device) = nullptr;
  // Since the driver was loaded, of all processes; GPUs before Volta do not tell.
  int (*energy_of)(NvmlDevice* device, unsigned long long* millijoules) = nullptr;
};

// Loaded and begun; the caller ends it with shutdown(). Errors say what is missing, and what to install.
Result<NvmlLibrary> open_nvml(const char* name);

}  // namespace chasqui
