// Wakes an event loop from another thread: an eventfd, a non-blocking pipe where there is no eventfd, and neither
// where both fail (the loop then polls on a timer, see net/wakeup_listener.h). Signals are level, not counted: any
// number of signal() calls before acknowledge() make the descriptor readable once.
// signal(): any thread, never blocks, never allocates. Everything else: the loop thread.
#pragma once

#include <memory>

namespace chasqui {

class Wakeup {
 public:
  enum class Kind { eventfd, pipe, polling };

  // Takes the best kind that the system gives. `best` lowers the choice, for tests and for --wakeup.
  explicit Wakeup(Kind best = Kind::eventfd);
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  Kind kind() const { return kind_; }
  // The descriptor to wait on for reading; -1 when kind() is polling.
  int fd() const { return read_fd_; }

  void signal();
  void acknowledge();

 private:
  bool open_eventfd();
  bool open_pipe();

  Kind kind_ = Kind::polling;
  int read_fd_ = -1;
  int write_fd_ = -1;
};

}  // namespace chasqui
