// A gate for what is used from several threads and is to be given to another owner: each use passes it, until it is
// shut for good, and shut() waits for the uses that have passed. Without a lock: a use is two additions. Any thread,
// but shut() not on the loop. After that, what was used may still have to be done with: finish() says that it is.
#pragma once

#include <atomic>

namespace chasqui {

class UseGate {
 public:
  // Inside as long as it lives, if it came through.
  class Pass {
   public:
    explicit Pass(UseGate& gate) : gate_(gate), through_(gate.enter()) {}
    ~Pass() {
      if (through_) gate_.leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    explicit operator bool() const { return through_; }

   private:
    UseGate& gate_;
    const bool through_;
  };

  // When this returns no use is inside, and none comes through any more.
  void shut() {
    shut_.store(true);
    for (int inside = inside_.load(); inside > 0; inside = inside_.load()) inside_.wait(inside);
  }

  void finish() { finished_.store(true); }
  bool finished() const { return finished_.load(); }

 private:
  // Counted first, and looked afterwards: either this sees that it is shut, or shut() sees the count.
  bool enter() {
    inside_.fetch_add(1);
    if (!shut_.load()) return true;
    leave();
    return false;
  }
  void leave() {
    inside_.fetch_sub(1);
    if (shut_.load()) inside_.notify_all();
  }

  std::atomic<int> inside_{0};
  std::atomic<bool> shut_{false};
  std::atomic<bool> finished_{false};
};

}  // namespace chasqui
