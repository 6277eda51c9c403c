#include "base/cpu_account.h"

#include <algorithm>

#include "base/thread_time.h"

namespace chasqui {

void CpuAccount::begin_steps() {
  if (stepping_.fetch_add(1) > 0) return;
  // Compute threads that spin a while for the next step have computed for none; those of a job, for the job.
  const bool jobs = waiting_.load() > 0;
  const CpuShare before = take(jobs);
  if (!jobs) return;
  rest_.fetch_add(before.cpu.count());
  energy_.fetch_add(before.joules.value_or(0));
}

void CpuAccount::begin_waiting() {
  if (waiting_.fetch_add(1) > 0) return;
  rest_.store(0);
  energy_.store(0);
  if (stepping_.load() == 0) take(false);
}

void CpuAccount::begin_job(int thread) {
  for (Job& job : jobs_) {
    int free = kFree;
    if (!job.thread.compare_exchange_strong(free, kClaimed)) continue;
    job.began.store(clocks_.thread(thread).count());
    job.thread.store(thread);
    return;
  }
}

CpuShare CpuAccount::end_job(int thread) {
  Duration::rep own = 0;
  const auto job = std::ranges::find_if(jobs_, [thread](const Job& one) { return one.thread.load() == thread; });
  if (job != jobs_.end()) {
    own = std::max<Duration::rep>(clocks_.thread(thread).count() - job->began.load(), 0);
    // In this order: a worker that looks in between takes too little, and the rest at its next step.
    ended_.fetch_add(own);
    job->thread.store(kFree);
  }
  CpuShare mine = stepping_.load() == 0 ? take(true) : CpuShare{};
  mine.cpu += Duration(own + rest_.exchange(0));
  const double energy = energy_.exchange(0);
  if (meter_ != nullptr && meter_->tells()) mine.joules = mine.joules.value_or(0) + energy;
  return mine;
}

// So far, those that run included. A place that is given to another thread meanwhile counts as one that has ended.
Duration::rep CpuAccount::of_jobs() const {
  Duration::rep running = 0;
  for (const Job& job : jobs_) {
    const int thread = job.thread.load();
    if (thread <= kFree) continue;
    const Duration::rep computed = clocks_.thread(thread).count() - job.began.load();
    if (job.thread.load() == thread) running += std::max<Duration::rep>(computed, 0);
  }
  return running + ended_.load();
}

CpuShare CpuAccount::take(bool of_requests) {
  // The clock of the process first: what the jobs compute between the two readings stays theirs.
  const Duration::rep whole = clocks_.process().count();
  const Duration::rep jobs = of_jobs();
  const Duration::rep now = whole - jobs;
  Duration::rep before = taken_.load();
  // Only forwards: two that take at the same time may come here in another order than they have read the clock.
  while (now > before && !taken_.compare_exchange_weak(before, now)) {
  }
  CpuShare out{Duration(std::max<Duration::rep>(now - before, 0))};
  if (meter_ != nullptr && meter_->tells()) out.joules = take_energy(out.cpu.count(), jobs, of_requests);
  return out;
}

// The part of what was computed by other threads than those of jobs, for which theirs is laid aside.
double CpuAccount::take_energy(Duration::rep cpu, Duration::rep jobs, bool of_requests) {
  const Duration::rep theirs = std::max<Duration::rep>(jobs - seen_.exchange(jobs), 0);
  if (!of_requests) {
    meter_->skip(clocks_.now());
    return 0;
  }
  const double all = meter_->take(clocks_.now());
  if (theirs == 0) return all;
  const double mine = all * static_cast<double>(cpu) / static_cast<double>(cpu + theirs);
  energy_.fetch_add(all - mine);
  return mine;
}

CpuAccount& cpu_account() {
  static CpuAccount account(
      {&process_time, [](int number) { return thread_time(number); }, [] { return RealClock().now(); }});
  return account;
}

}  // namespace chasqui
