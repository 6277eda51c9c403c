// What a process that decodes gives up: memory, files and processes by limits of the kernel, system calls by a filter.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <utility>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app/decoder_child.h"
#include "base/limits.h"

namespace chasqui {
namespace {

// Their own memory and calls are more than a decoder's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // unknown: no filter
#endif

// What reads orders, writes answers, allocates, keeps the alarm and ends.
constexpr int kCalls[] = {
    __NR_read,  __NR_write,         __NR_munmap,    __NR_mremap,     __NR_madvise, __NR_brk,
    __NR_futex, __NR_clock_gettime, __NR_setitimer, __NR_exit_group, __NR_exit,    __NR_restart_syscall,
#ifdef __NR_alarm
    __NR_alarm,
#endif
};

// Address space that the binary and its libraries have: with those of a GPU nearly a GiB.
rlim_t mapped_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int which, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(which), &both);
}

sock_filter statement(unsigned code, std::uint32_t value) { return BPF_STMT(static_cast<std::uint16_t>(code), value); }

sock_filter jump(unsigned code, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
  return BPF_JUMP(static_cast<std::uint16_t>(code), value, if_true, if_false);
}

sock_filter load_word(std::size_t offset) {
  return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

// Any call but these ends the process, and memory is mapped only as what is never executed. What has a number of its
// own for a call, as x32 has, is another call.
std::vector<sock_filter> program() {
  const sock_filter end = statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const sock_filter allow = statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  std::vector<sock_filter> out{load_word(offsetof(seccomp_data, arch)),
                               jump(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0), end,
                               load_word(offsetof(seccomp_data, nr))};
  for (const int call : kCalls) {
    out.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
    out.push_back(allow);
  }
  out.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 2, 0));
  out.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 1, 0));
  out.push_back(end);
  // The third argument of both; its low half, which comes first.
  out.push_back(load_word(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t)));
  out.push_back(jump(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
  out.push_back(end);
  out.push_back(allow);
  return out;
}

bool filter_calls() {
  if (kArchitecture == 0 || kSanitized) return false;
  std::vector<sock_filter> calls = program();
  const sock_fprog whole{static_cast<unsigned short>(calls.size()), calls.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

}  // namespace

// No death signal of the parent: it comes when the thread that started this process ends. The socket's end is told.
bool confine_decoder() {
  if (!kSanitized) limit(RLIMIT_AS, mapped_bytes() + kSizeLimit<"media_decoder_bytes">);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 0);
  limit(RLIMIT_NPROC, 0);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return filter_calls();
}

}  // namespace chasqui
