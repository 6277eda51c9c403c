#include "base/thread_priority.h"

#ifdef __linux__
#include <algorithm>
#include <cstdint>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace chasqui {

#ifdef __linux__
namespace {

// What sched_setattr(2) takes: not all C libraries that we build with have the structure and the call.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;  // SCHED_OTHER
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  // Nanoseconds. The slice that the thread asks for, since Linux 6.12; older ones do not look at it with this policy.
  std::uint64_t runtime = 0;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

// Each step of nice is a factor of 1.25 in the share: a quarter beside a thread that has 0. More would make requests
// wait on a machine with other work.
constexpr std::int32_t kNice = 5;
constexpr std::int32_t kNiceMost = 19;
constexpr std::uint64_t kSlice = 200'000;

}  // namespace
#endif

void yield_to_compute_threads() {
#ifdef __linux__
  SchedulingAttributes wanted;
  wanted.nice = std::min(::getpriority(PRIO_PROCESS, 0) + kNice, kNiceMost);
  wanted.runtime = kSlice;
  ::syscall(SYS_sched_setattr, 0, &wanted, 0);
#endif
}

}  // namespace chasqui
