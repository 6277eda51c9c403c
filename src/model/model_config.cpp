#include "model/model_config.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

#include "base/control_group.h"

namespace chasqui {
namespace {

#ifdef __linux__
// Cores, not hyper-threads: two threads of one core that compute the same thing wait for each other.
std::int32_t allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string siblings;
    if (!std::getline(file, siblings)) siblings = std::to_string(cpu);
    cores.insert(siblings);
  }
  return static_cast<std::int32_t>(cores.size());
}
#else
std::int32_t allowed_cores() { return 0; }
#endif

}  // namespace

std::int32_t default_threads() {
  std::int32_t cores = allowed_cores();
  if (cores <= 0) cores = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  // Threads beyond a quota stop each other: the kernel lets none of them run until the next period.
  if (const auto quota = look_at_control_group().cores) cores = std::min(cores, static_cast<std::int32_t>(*quota));
  return std::max(cores, 1);
}

}  // namespace chasqui
