// NVML as base/nvml_energy calls it, with two GPUs whose counters a test sets; a kind each (CMakeLists.txt): GOOD;
// GROWING, whose GPUs use 10 J from one reading to the next; OLD, which has no counters of energy; and DEAD, which does
// not start.
#include <stdatomic.h>
#include <string.h>

enum { kSuccess = 0, kNotSupported = 3, kNotFound = 6, kDriverNotLoaded = 9 };

struct gpu {
  const char* address;
  atomic_ullong millijoules;
  atomic_int result;  // of its counter
};
struct fake {
  struct gpu gpus[2];
  atomic_int begun;  // and not ended
  atomic_int readings;
};

static struct fake fake = {.gpus = {{.address = "0000:01:00.0"}, {.address = "0000:c1:00.0"}}};

// The test has the same struct, with plain atomics.
struct fake* fake_nvml(void);
struct fake* fake_nvml(void) {
  return &fake;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void) {
#ifdef DEAD
  return kDriverNotLoaded;
#else
  ++fake.begun;
  return kSuccess;
#endif
}

int nvmlShutdown(void);
int nvmlShutdown(void) {
  --fake.begun;
  return kSuccess;
}

const char* nvmlErrorString(int result);
const char* nvmlErrorString(int result) {
  return result == kNotSupported ? "fake: not supported" : result == kNotFound ? "fake: not found" : "fake: failed";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device);
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  for (int i = 0; i < 2; ++i) {
    if (strcmp(fake.gpus[i].address, address) != 0) continue;
    *device = &fake.gpus[i];
    return kSuccess;
  }
  return kNotFound;
}

#ifndef OLD
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules);
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  struct gpu* gpu = device;
#ifdef GROWING
  gpu->millijoules += 10000;
#endif
  *millijoules = gpu->millijoules;
  const int result = gpu->result;
  ++fake.readings;
  return result;
}
#endif
