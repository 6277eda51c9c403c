// The only way for threads to meet: a bounded queue with many producers and one consumer, and the only mutex for what
// is Chasqui's own (with base/wakeup.h for consumers that sleep in an event loop instead of in wait()).
//   producers  push() / push_all(), any thread, never block on the consumer
//   consumer   drain(), one thread; swaps the whole content out, so the lock is held for a few instructions
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace chasqui {

enum class Wait { no, yes };

template <class T>
class Mailbox {
 public:
  // `on_push` runs after each push, outside the lock, on the producer's thread; it must not block.
  explicit Mailbox(std::size_t capacity, std::function<void()> on_push = {})
      : capacity_(capacity), on_push_(std::move(on_push)) {}

  // False when the mailbox is full or closed; the item is then untouched.
  bool push(T&& item) {
    return push(std::move(item), [] {});
  }

  // The same; `unseen` runs after the push and before the consumer can have the item, under the lock: a few
  // instructions, and nothing of this mailbox.
  template <class Unseen>
  bool push(T&& item, Unseen&& unseen) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
      unseen();
    }
    notify();
    return true;
  }

  // Appends all items, beyond the capacity if need be, and empties `items`: for producers that bound themselves by
  // asking over_capacity(). One notification for all of them.
  void push_all(std::vector<T>& items) {
    push_all(items, [] {});
  }
  template <class Unseen>  // as of push()
  void push_all(std::vector<T>& items, Unseen&& unseen) {
    if (items.empty()) return;
    {
      std::lock_guard lock(mutex_);
      if (items_.empty()) {
        items_.swap(items);
      } else {
        items_.insert(items_.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
      }
      unseen();
    }
    items.clear();
    notify();
  }

  // Of items that can be one: `into(waiting, item)` puts it into one that waits, if it can, and says so; else it is
  // pushed, beyond the capacity if need be. Under the lock, and nothing of this mailbox.
  template <class Into>
  void merge(T&& item, Into&& into) {
    {
      std::lock_guard lock(mutex_);
      bool merged = false;
      for (T& waiting : items_) merged = merged || into(waiting, item);
      if (!merged) items_.push_back(std::move(item));
    }
    notify();
  }

  // Moves everything into `out` (which is cleared first). Wait::yes sleeps until there is something, or close().
  void drain(std::vector<T>& out, Wait wait = Wait::no) {
    out.clear();
    std::unique_lock lock(mutex_);
    if (wait == Wait::yes) ready_.wait(lock, [this] { return closed_ || !items_.empty(); });
    out.swap(items_);
  }

  // Waits for so long at most; false: there was nothing.
  template <class Rep, class Period>
  bool drain_within(std::vector<T>& out, std::chrono::duration<Rep, Period> most) {
    out.clear();
    std::unique_lock lock(mutex_);
    const bool came = ready_.wait_for(lock, most, [this] { return closed_ || !items_.empty(); });
    out.swap(items_);
    return came;
  }

  // Shows the consumer what waits for it, under the lock: a few instructions for each, and nothing of this mailbox.
  // What is pushed later finds what the consumer wrote before.
  template <class Look>
  void look_at_waiting(Look&& look) const {
    std::lock_guard lock(mutex_);
    for (const T& item : items_) look(item);
  }

  // Wakes the consumer for good; what is inside can still be drained, nothing more comes in by push().
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    notify();
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  std::size_t capacity() const { return capacity_; }
  bool over_capacity() const { return size() > capacity_; }

 private:
  void notify() {
    ready_.notify_one();
    if (on_push_) on_push_();
  }

  const std::size_t capacity_;
  const std::function<void()> on_push_;

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  // Protected by mutex_.
  std::vector<T> items_;
  bool closed_ = false;
};

}  // namespace chasqui
