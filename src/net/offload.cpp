#include "net/offload.h"

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
  bool busy = false;  // loop thread only
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
  if (waiting_.size() >= options_.queue_jobs / 2) {
    std::erase_if(waiting_, [this](const auto& entry) { return drop_unwanted(entry.second); });
  }
  if (waiting_.size() >= options_.queue_jobs) {
    refused_.add();
    return false;
  }
  jobs_.add();
  waiting_.emplace(clock_.now() + can_wait, std::move(job));
  hand_out();
  return true;
}

void OffloadPool::hand_out() {
  for (const auto& thread : threads_) {
    while (!waiting_.empty() && drop_unwanted(waiting_.begin()->second)) waiting_.erase(waiting_.begin());
    if (waiting_.empty()) break;
    if (thread->busy) continue;
    thread->busy = true;
    thread->inbox.push(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  queued_.set(static_cast<std::int64_t>(waiting_.size()));
}

void OffloadPool::job_done(std::size_t thread, const std::shared_ptr<OffloadJob>& job) {
  threads_[thread]->busy = false;
  job->finish();
  hand_out();
}

void OffloadPool::add_to(MetricsPage& page) const {
  page.add("chasqui_offload_jobs_total", "Jobs given to the offload threads.", jobs_);
  page.add("chasqui_offload_refused_total", "Jobs refused because the queue was full.", refused_);
  page.add("chasqui_offload_dropped_total", "Jobs dropped because their clients left before their turn.", dropped_);
  page.add("chasqui_offload_queue_jobs", "Jobs that wait for an offload thread.", queued_);
}

}  // namespace chasqui::net
