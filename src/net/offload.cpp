#include "net/offload.h"

#include <algorithm>

#include <pthread.h>

#include "base/log.h"
#include "base/mailbox.h"
#include "base/thread_name.h"

namespace chasqui::net {

Error detail::offload_exception(std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    log_error("exception left an offloaded job", {{"what", e.what()}});
  } catch (...) {
    log_error("exception left an offloaded job", {{"what", "not a std::exception"}});
  }
  return Error{ErrorCode::internal, "The server failed while it worked on this request.", {}};
}

Error detail::nobody_waits() {
  return Error{ErrorCode::unavailable, "The client left before its request was read.", {}};
}

// The loop hands a thread one job at a time, so its mailbox needs one place.
struct OffloadPool::Thread {
  Thread(OffloadPool& owner, std::size_t number) : pool(owner), index(number) {}

  static void* enter(void* self) {
    auto& thread = *static_cast<Thread*>(self);
    name_this_thread(thread.pool.options_.name.substr(0, 12) + "-" + std::to_string(thread.index % 100));
    thread.work();
    return nullptr;
  }

  void work() {
    std::vector<std::shared_ptr<OffloadJob>> jobs;
    for (;;) {
      inbox.drain(jobs, Wait::yes);
      if (jobs.empty()) return;  // closed
      for (auto& job : jobs) {
        job->execute();
        // The job moves along, so that its last owner lets go of it on the loop.
        pool.loop_.post([owner = &pool, number = index, done = std::move(job)] { owner->job_done(number, done); });
      }
    }
  }

  OffloadPool& pool;
  const std::size_t index;
  Mailbox<std::shared_ptr<OffloadJob>> inbox{1};
  pthread_t handle{};
  // Loop thread only.
  bool busy = false;
  TimePoint since{};  // it has been busy
  bool runs_long = false;
};

OffloadPool::OffloadPool(EventLoop& loop, OffloadOptions options) : loop_(loop), options_(std::move(options)) {
  CHECK(options_.threads > 0);
  pthread_attr_t attributes;
  CHECK(::pthread_attr_init(&attributes) == 0);
  CHECK(::pthread_attr_setstacksize(&attributes, options_.stack_bytes) == 0, "offload stack size");
  for (std::size_t i = 0; i < options_.threads; ++i) {
    threads_.push_back(std::make_unique<Thread>(*this, i));
    Thread& thread = *threads_.back();
    CHECK(::pthread_create(&thread.handle, &attributes, &Thread::enter, &thread) == 0, "offload thread");
  }
  ::pthread_attr_destroy(&attributes);
}

OffloadPool::~OffloadPool() {
  for (const auto& thread : threads_) thread->inbox.close();
  for (const auto& thread : threads_) ::pthread_join(thread->handle, nullptr);
}

// True: its coroutine has ended, or hears now that there is no result.
bool OffloadPool::drop_unwanted(const std::shared_ptr<OffloadJob>& waiting) {
  if (waiting.use_count() == 1) return true;
  if (!waiting->gone()) return false;
  dropped_.add();
  waiting->give_up();
  waiting->finish();
  return true;
}

bool OffloadPool::submit(std::shared_ptr<OffloadJob> job, Duration can_wait) {
  // Whether somebody left is known a turn after it was first asked, so it is not put off until there is no place.
  const auto drop_from = [this](Queue& queue) {
    std::erase_if(queue, [this](const auto& entry) { return drop_unwanted(entry.second); });
  };
  const bool is_long = can_wait >= kLong;
  const std::size_t half = options_.queue_jobs / 2;
  if (waiting() >= half || (is_long && long_.size() >= half / 2)) {
    drop_from(short_);
    drop_from(long_);
  }
  if (waiting() >= options_.queue_jobs || (is_long && long_.size() >= std::max<std::size_t>(half, 1))) {
    refused_.add();
    return false;
  }
  jobs_.add();
  (is_long ? long_ : short_).emplace(clock_.now() + can_wait, std::move(job));
  hand_out();
  return true;
}

// Whose first job is next; null: nobody's.
OffloadPool::Queue* OffloadPool::next_queue() {
  for (Queue* queue : {&short_, &long_}) {
    while (!queue->empty() && drop_unwanted(queue->begin()->second)) queue->erase(queue->begin());
  }
  const bool long_may = !long_.empty() && (threads_.size() == 1 || long_running_ + 1 < threads_.size());
  if (long_may && (short_.empty() || long_.begin()->first < short_.begin()->first)) return &long_;
  return short_.empty() ? nullptr : &short_;
}

void OffloadPool::hand_out() {
  for (const auto& thread : threads_) {
    if (thread->busy) continue;
    Queue* queue = next_queue();
    if (queue == nullptr) break;
    thread->busy = true;
    thread->since = clock_.now();
    thread->runs_long = queue == &long_;
    if (thread->runs_long) ++long_running_;
    thread->inbox.push(std::move(queue->begin()->second));
    queue->erase(queue->begin());
  }
  queued_.set(static_cast<std::int64_t>(waiting()));
}

void OffloadPool::job_done(std::size_t thread, const std::shared_ptr<OffloadJob>& job) {
  threads_[thread]->busy = false;
  if (std::exchange(threads_[thread]->runs_long, false)) --long_running_;
  job->finish();
  hand_out();
}

std::size_t OffloadPool::stuck_threads(TimePoint now) const {
  const auto stuck = [&](const auto& thread) { return thread->busy && now - thread->since > kStuckAfter; };
  return static_cast<std::size_t>(std::count_if(threads_.begin(), threads_.end(), stuck));
}

void OffloadPool::add_to(MetricsPage& page) const {
  page.add("chasqui_offload_jobs_total", "Jobs given to the offload threads.", jobs_);
  page.add("chasqui_offload_refused_total", "Jobs refused because the queue was full.", refused_);
  page.add("chasqui_offload_dropped_total", "Jobs dropped because their clients left before their turn.", dropped_);
  page.add("chasqui_offload_queue_jobs", "Jobs that wait for an offload thread.", queued_);
}

}  // namespace chasqui::net
