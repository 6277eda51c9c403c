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
// Owners share the threads: the next job is of the owner that has the fewest running, of equals of the one whose jobs
// have had the least time. An owner that joins starts with the least time of those present.
//
// The jobs of one owner run in the order in which they come, each put off by what its caller says it can wait: so a
// short request does not stand behind a hundred long ones that came just before. Long jobs, which say that they can
// wait for kLong or more, never have all threads, nor more than half of the queue. Where `gone` tells that the result
// is not wanted any more, a job that still waits is dropped (Error unavailable): when its turn comes, or when places
// get scarce.
//
// bounded: by jobs and by bytes. Where an owner with few jobs finds the queue full, the newest job of the owner that
// has the most of them gives up its place (Error overloaded), so that one owner cannot fill the queue for others.
#pragma once

#include <cstddef>
#include <cstdint>
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
#include "base/metric_set.h"
#include "net/event_loop.h"
#include "net/event_signal.h"

namespace chasqui::net {

struct OffloadOptions {
  std::size_t threads = 2;
  std::size_t queue_jobs = kSizeLimit<"offload_jobs">;    // waiting, not running
  std::size_t stack_bytes = 64 * 1024 * 1024;             // virtual; for recursive code such as std::regex
  std::string name = "offload";                           // of the threads, at most 12 characters
  std::size_t queue_bytes = kSizeLimit<"offload_bytes">;  // of those that wait
  bool yields = false;                                    // its threads, as yield_to_compute_threads() says
  Duration stuck_after = kTimeLimit<"offload_job_seconds">;
};

// What the caller says of a job.
struct OffloadTerms {
  std::uint32_t owner = 0;          // whose turn it takes
  std::size_t bytes = 0;            // that it holds while it waits
  Duration can_wait{};              // lets other jobs of its owner pass for so long
  std::function<bool()> gone = {};  // the result is not wanted any more; called on the loop while the job waits
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
Error client_left();
Error queue_full();

}  // namespace detail

// One job; shared by the waiting coroutine and the pool, so that either may end first. Destroyed on the loop.
class OffloadJob {
 public:
  OffloadJob(EventLoop& loop, OffloadTerms terms) : terms_(std::move(terms)), finished_(loop) {}
  virtual ~OffloadJob() = default;
  virtual void execute() noexcept = 0;
  // The result is this error; in place of execute().
  virtual void give_up(Error error) = 0;
  // It is wanted no more.
  bool gone() const { return terms_.gone && terms_.gone(); }
  const OffloadTerms& terms() const { return terms_; }

  Awaitable<bool> wait() { return finished_.wait(); }
  void finish() { finished_.notify(); }

  std::uint64_t number = 0;  // the n-th that the pool took

 private:
  const OffloadTerms terms_;
  EventSignal finished_;
};

class OffloadPool {
 public:
  static constexpr Duration kLong = std::chrono::seconds(1);

  OffloadPool(EventLoop& loop, OffloadOptions options = {});
  // Waits for the jobs that run; drops those that wait.
  ~OffloadPool();
  OffloadPool(const OffloadPool&) = delete;
  OffloadPool& operator=(const OffloadPool&) = delete;

  template <class F>
  using ResultOf = typename detail::OffloadResult<std::invoke_result_t<F&>>::Type;

  template <class F>
  Awaitable<ResultOf<F>> run(F function, OffloadTerms terms = {});

  // How many threads are in a job that has computed, or slept, for longer than any job of ours takes. What it has to
  // wait for a processor on a busy machine does not count. Loop thread.
  std::size_t stuck_threads(TimePoint now) const;

  void add_to(MetricsPage& page) const;
  std::size_t waiting() const { return waiting_; }
  // The newest job, and whether it and all before it have run, or never will: what those refer to may go then. Loop
  // thread; looks at all that wait.
  std::uint64_t newest() const { return newest_; }
  bool ended_until(std::uint64_t number) const;
  // That were asked for so far.
  std::uint64_t asked() const { return jobs_.value() + refused_.value(); }

 private:
  struct Thread;
  using JobPtr = std::shared_ptr<OffloadJob>;
  // By when each should run; of equals, who came first.
  using Queue = std::multimap<TimePoint, JobPtr>;
  // The jobs of one owner. There is a line as long as one of them waits or runs.
  struct Line {
    Queue brief;
    Queue lengthy;
    std::size_t running = 0;
    std::size_t bytes = 0;  // of those that wait
    Duration served{};      // time that its jobs have taken
    std::size_t waiting() const { return brief.size() + lengthy.size(); }
  };
  using Lines = std::map<std::uint32_t, Line>;

  template <class F>
  class Job final : public OffloadJob {
   public:
    Job(EventLoop& loop, F function, OffloadTerms terms)
        : OffloadJob(loop, std::move(terms)), function_(std::move(function)) {}

    void give_up(Error error) override { result.emplace(std::move(error)); }

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
  bool submit(JobPtr job);
  bool fits(const OffloadTerms& terms) const;
  bool make_room(const OffloadTerms& terms);
  Line& line_of(std::uint32_t owner);
  void sweep();
  void hand_out();
  Lines::iterator next_line();
  Queue* next_queue(Line& line) const;
  bool drop_unwanted(const JobPtr& waiting);
  Queue::iterator take_out(Line& line, Queue& queue, Queue::iterator place);
  void job_done(std::size_t thread, const JobPtr& job, Duration took);

  EventLoop& loop_;
  const OffloadOptions options_;
  const RealClock clock_;
  Lines lines_;
  std::size_t waiting_ = 0;        // of all lines
  std::size_t waiting_long_ = 0;   // … that are long
  std::size_t waiting_bytes_ = 0;  // … what they hold
  std::size_t long_running_ = 0;
  std::uint64_t newest_ = 0;
  std::size_t unswept_ = 0;  // jobs that came since the last sweep()
  std::vector<std::unique_ptr<Thread>> threads_;
  MetricSet metrics_;
  Counter jobs_{metrics_, {"chasqui_offload_jobs_total", "Jobs given to the offload threads."}};
  Counter long_jobs_{metrics_,
                     {"chasqui_offload_long_jobs_total", "Of them, long ones, which never have all threads."}};
  Counter refused_{metrics_, {"chasqui_offload_refused_total", "Jobs refused because the queue was full."}};
  Counter dropped_{metrics_, {"chasqui_offload_dropped_total", "Jobs dropped: their clients left."}};
  Gauge queued_{metrics_, {"chasqui_offload_queue_jobs", "Jobs that wait for an offload thread."}};
};

template <class F>
Awaitable<OffloadPool::ResultOf<F>> OffloadPool::run(F function, OffloadTerms terms) {
  auto job = std::make_shared<Job<F>>(loop_, std::move(function), std::move(terms));
  if (!submit(job)) co_return detail::queue_full();
  co_await job->wait();
  co_return std::move(*job->result);
}

}  // namespace chasqui::net
