#include "base/nvml_library.h"

#include <string>

#include "base/shared_library.h"

namespace chasqui {
namespace {

Error no_nvml(const std::string& what) { return {ErrorCode::not_supported, what, ""}; }

}  // namespace

Result<NvmlLibrary> open_nvml(const char* name) {
  SharedLibrary library({name});
  if (!library.loaded()) {
    return no_nvml(library.fault("NVML") +
                   ": it comes with NVIDIA's driver, and into a container with NVIDIA_DRIVER_CAPABILITIES=utility");
  }
  NvmlLibrary out;
  library.find("nvmlInit_v2", out.init);
  library.find("nvmlShutdown", out.shutdown);
  library.find("nvmlErrorString", out.text_of);
  library.find("nvmlDeviceGetHandleByPciBusId_v2", out.device_at);
  library.find("nvmlDeviceGetTotalEnergyConsumption", out.energy_of);
  if (!library.missing().empty()) {
    return no_nvml(library.fault("NVML") + ": install a newer driver of NVIDIA's");
  }
  if (const int result = out.init(); result != NvmlLibrary::kSuccess) {
    return no_nvml(std::string("NVML does not start: ") + out.text_of(result));
  }
  return out;
}

}  // namespace chasqui
