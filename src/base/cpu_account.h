// Whose the processor time of the process is. Workers take it at the ends of their steps, for the requests of the step;
// a thread that computes jobs beside them (embeddings) takes it at the end of each job. Its own time is its job's,
// however many steps end meanwhile. What all other threads compute is the steps' while a worker has any, and else the
// job's. No time is taken twice, and what is computed while neither has anything to compute is no request's.
//
// Where the machine tells its energy, that is taken with the time, in the same shares.
//
// Any thread, without locks: what one thread reads while others take may be late by an instant, which the next one to
// take makes up for. Where the system tells no thread of the time of another one, jobs beside steps have none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/energy_meter.h"
#include "base/thread_watch.h"

namespace chasqui {

struct CpuShare {
  Duration cpu{};
  std::optional<double> joules{};  // where the machine tells
};

class CpuAccount {
 public:
  // What the process, and a thread that the system counts so, have computed; see base/thread_time.h.
  struct Clocks {
    Duration (*process)();
    Duration (*thread)(int);
    TimePoint (*now)();
  };
  explicit CpuAccount(Clocks clocks) : clocks_(clocks) {}

  // Once, before there is a thread that takes; null: the machine does not tell.
  void measure_energy(std::unique_ptr<EnergyMeter> meter) { meter_ = std::move(meter); }
  const EnergyMeter* meter() const { return meter_.get(); }

  // A worker has something to compute, until the other.
  void begin_steps();
  void end_steps() { stepping_.fetch_sub(1); }
  CpuShare take_step() { return take(true); }

  // Requests are being computed, or wait for jobs.
  bool busy() const { return stepping_.load() > 0 || waiting_.load() > 0; }

  // A request waits for jobs, until the other.
  void begin_waiting();
  void end_waiting() { waiting_.fetch_sub(1); }
  // The thread computes a job, until the other, which says what is the job's.
  void begin_job(int thread);
  CpuShare end_job(int thread);

 private:
  // Jobs that run at once; those of more models are counted like any other work of the process.
  static constexpr std::size_t kJobs = 16;
  static constexpr int kFree = 0;
  static constexpr int kClaimed = -1;
  struct Job {
    std::atomic<int> thread{kFree};
    std::atomic<Duration::rep> began{0};
  };

  Duration::rep of_jobs() const;
  CpuShare take(bool of_requests);
  double take_energy(Duration::rep cpu, Duration::rep jobs, bool of_requests);

  const Clocks clocks_;
  std::unique_ptr<EnergyMeter> meter_;
  std::atomic<int> stepping_{0};
  std::atomic<int> waiting_{0};
  std::array<Job, kJobs> jobs_{};
  std::atomic<Duration::rep> ended_{0};  // of the threads of jobs that have ended, while they ran
  std::atomic<Duration::rep> taken_{0};  // of all other threads
  std::atomic<Duration::rep> rest_{0};   // … what a job has to take, which ran when a worker began
  std::atomic<Duration::rep> seen_{0};   // of the threads of jobs, when energy was last taken
  std::atomic<double> energy_{0};        // joules that a job has to take
};

// That of this process.
CpuAccount& cpu_account();

// A job that the calling thread computes; on its stack.
class CpuJob {
 public:
  explicit CpuJob(CpuAccount& account) : account_(account) { account_.begin_job(thread_.number()); }
  ~CpuJob() { end(); }
  CpuJob(const CpuJob&) = delete;
  CpuJob& operator=(const CpuJob&) = delete;

  // Once: the job is over.
  CpuShare end() {
    if (ended_) return {};
    ended_ = true;
    return account_.end_job(thread_.number());
  }

 private:
  CpuAccount& account_;
  const ThreadWatch thread_;
  bool ended_ = false;
};

}  // namespace chasqui
