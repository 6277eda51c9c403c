// A few threads for work that would hold the loop up. run() is called on the loop, executes a function on a thread of
// the pool, and resumes the caller on the loop. Owned by the application; must be destroyed before the loop and after
// the loop has stopped.
//
//   auto work = [text = std::move(text)] { return parse(text); };     // named: see net/awaitable.h
//   Result<Tree> tree = co_await offload.run(std::move(work));
//
// The function must be callable on any thread and own what it uses: the caller may be gone when it runs. It returns T
// or Result<T>; run() gives Result<T> either way. Exceptions become Error internal. A full queue is Error overloaded.
//
// Jobs run in the order in which they come, each put off by what its caller says it can wait: so a short request does
// not stand behind a hundred long ones that came just before. Long jobs, which say that they can wait for kLong or
// more, never have all threads, nor more than half of the queue: whoever sends many of them keeps only such jobs
// waiting. Where `gone` tells that nobody wants the result any more, a job that still waits is dropped (Error
// unavailable): when its turn comes, or when places get scarce.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "net/event_loop.h"
#include "net/event_signal.h"

namespace chasqui::net {

struct OffloadOptions {
  std::size_t threads = 2;
  std::size_t queue_jobs = kSizeLimit<"offload_jobs">;  // waiting, not running
  std::size_t stack_bytes = 64 * 1024 * 1024;           // virtual; for recursive code such as std::regex
  std::string name = "offload";                         // of the threads, at most 12 characters
};

namespace detail {

template <class T>
struct OffloadResult {
  using Type = Result<T>;
};
template <class T>
struct OffloadResult<Result<T>> {
  using Type = Result<T>;
};

Error offload_exception(std::exception_ptr exception);
Error nobody_waits();

}  // namespace detail

// One job; shared by the waiting coroutine and the pool, so that either may end first. Destroyed on the loop.
class OffloadJob {
 public:
  OffloadJob(EventLoop& loop, std::function<bool()> gone) : finished_(loop), gone_(std::move(gone)) {}
  virtual ~OffloadJob() = default;
  virtual void execute() noexcept = 0;
  // The result is an Error; in place of execute().
  virtual void give_up() = 0;
  // It is wanted no more.
  bool gone() const { return gone_ && gone_(); }

  Awaitable<bool> wait() { return finished_.wait(); }
  void finish() { finished_.notify(); }

 private:
  EventSignal finished_;
  std::function<bool()> gone_;  // called on the loop while the job waits
};

class OffloadPool {
 public:
  static constexpr Duration kLong = std::chrono::seconds(1);
  static constexpr Duration kStuckAfter = kTimeLimit<"offload_job_seconds">;

  OffloadPool(EventLoop& loop, OffloadOptions options = {});
  // Waits for the jobs that run; drops those that wait.
  ~OffloadPool();
  OffloadPool(const OffloadPool&) = delete;
  OffloadPool& operator=(const OffloadPool&) = delete;

  template <class F>
  using ResultOf = typename detail::OffloadResult<std::invoke_result_t<F&>>::Type;

  template <class F>
  Awaitable<ResultOf<F>> run(F function, Duration can_wait = {}, std::function<bool()> gone = {});

  // How many threads have been in one job for longer than any job of ours takes. Loop thread.
  std::size_t stuck_threads(TimePoint now) const;

  void add_to(MetricsPage& page) const;
  std::size_t waiting() const { return short_.size() + long_.size(); }

 private:
  struct Thread;
  // By when each should run; of equals, who came first.
  using Queue = std::multimap<TimePoint, std::shared_ptr<OffloadJob>>;

  template <class F>
  class Job final : public OffloadJob {
   public:
    Job(EventLoop& loop, F function, std::function<bool()> gone)
        : OffloadJob(loop, std::move(gone)), function_(std::move(function)) {}

    void give_up() override { result.emplace(detail::nobody_waits()); }

    void execute() noexcept override {
      try {
        if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
          function_();
          result.emplace();
        } else {
          result.emplace(function_());
        }
      } catch (...) {
        result.emplace(detail::offload_exception(std::current_exception()));
      }
    }

    std::optional<ResultOf<F>> result;

   private:
    F function_;
  };

  // False when the queue is full.
  bool submit(std::shared_ptr<OffloadJob> job, Duration can_wait);
  void hand_out();
  Queue* next_queue();
  bool drop_unwanted(const std::shared_ptr<OffloadJob>& waiting);
  void job_done(std::size_t thread, const std::shared_ptr<OffloadJob>& job);

  EventLoop& loop_;
  const OffloadOptions options_;
  const RealClock clock_;
  Queue short_;
  Queue long_;
  std::size_t long_running_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  Counter jobs_;
  Counter refused_;
  Counter dropped_;
  Gauge queued_;
};

template <class F>
Awaitable<OffloadPool::ResultOf<F>> OffloadPool::run(F function, Duration can_wait, std::function<bool()> gone) {
  auto job = std::make_shared<Job<F>>(loop_, std::move(function), std::move(gone));
  if (!submit(job, can_wait)) {
    co_return Error{ErrorCode::overloaded, "The server has too much work waiting; try again later.", {}};
  }
  co_await job->wait();
  co_return std::move(*job->result);
}

}  // namespace chasqui::net
