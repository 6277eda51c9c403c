#include "base/thread_watch.h"

#include "base/thread_time.h"

#ifdef __linux__
#include <array>
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace chasqui {
namespace {

thread_local ThreadWatch* of_this_thread = nullptr;

}  // namespace

ThreadWatch::~ThreadWatch() { of_this_thread = nullptr; }

void ThreadWatch::has_waited(TimePoint now) {
  if (of_this_thread != nullptr)
    of_this_thread->waited_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
}

#ifdef __linux__

ThreadWatch::ThreadWatch() : number_(static_cast<int>(::syscall(SYS_gettid))) { of_this_thread = this; }

bool ThreadWatch::sleeps() const {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", number_);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  std::array<char, 128> bytes{};
  const ssize_t size = ::read(file, bytes.data(), bytes.size());
  ::close(file);
  // "1234 (name) R …"; a name has at most 15 bytes, and may hold any.
  const std::string_view text(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t end = text.rfind(')');
  return end == text.npos || end + 2 >= text.size() || text[end + 2] != 'R';
}

#else

ThreadWatch::ThreadWatch() { of_this_thread = this; }
bool ThreadWatch::sleeps() const { return true; }

#endif

Duration ThreadWatch::computed() const { return thread_time(number_); }

}  // namespace chasqui
