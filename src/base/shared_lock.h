// The only lock beside the mailbox's: many readers share it, or one writer has it alone. For what a library keeps in an
// object that threads share, and does not protect; what is Chasqui's own is handed over in mailboxes. Served in the
// order of arrival, so that readers who follow each other without a gap do not keep a writer waiting. Any thread.
// REQUIRES: a thread takes it once at a time, and never while a mailbox is locked
#pragma once

#include <mutex>
#include <shared_mutex>

namespace chasqui {

class SharedLock {
 public:
  class Reading {
   public:
    explicit Reading(SharedLock& lock) {
      const std::lock_guard turn(lock.line_);
      held_ = std::shared_lock(lock.mutex_);
    }

   private:
    std::shared_lock<std::shared_mutex> held_;
  };

  class Writing {
   public:
    explicit Writing(SharedLock& lock) {
      const std::lock_guard turn(lock.line_);
      held_ = std::unique_lock(lock.mutex_);
    }

   private:
    std::unique_lock<std::shared_mutex> held_;
  };

 private:
  std::mutex line_;  // held by the one whose turn is next
  std::shared_mutex mutex_;
};

}  // namespace chasqui
