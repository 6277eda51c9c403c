#include "net/offload.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include <pthread.h>

#include "base/log.h"
#include "base/mailbox.h"
#include "base/thread_name.h"
#include "base/thread_priority.h"
#include "base/thread_watch.h"

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

Error detail::queue_full() {
  return Error{ErrorCode::overloaded, "The server has too much work waiting; try again later.", {}};
}

Error detail::client_left() {
  return Error{ErrorCode::unavailable, "The client left before its request was read.", {}};
}

// The loop hands a thread one job at a time, so its mailbox needs one place.
struct OffloadPool::Thread {
  Thread(OffloadPool& owner, std::size_t number) : pool(owner), index(number) {}

  static void* enter(void* self) {
    auto& thread = *static_cast<Thread*>(self);
    const ThreadWatch watch;
    thread.watch = &watch;
    name_this_thread(thread.pool.options_.name.substr(0, 12) + "-" + std::to_string(thread.index % 100));
    if (thread.pool.options_.yields) yield_to_compute_threads();
    thread.work();
    return nullptr;
  }

  void work() {
    std::vector<std::shared_ptr<OffloadJob>> jobs;
    for (;;) {
      inbox.drain(jobs, Wait::yes);
      if (jobs.empty()) return;  // closed
      for (auto& job : jobs) {
        const TimePoint began = pool.clock_.now();
        job->execute();
        const Duration took = pool.clock_.now() - began;
        // The job moves along, so that its last owner lets go of it on the loop.
        pool.loop_.post(
            [owner = &pool, number = index, done = std::move(job), took] { owner->job_done(number, done, took); });
      }
    }
  }

  OffloadPool& pool;
  const std::size_t index;
  Mailbox<std::shared_ptr<OffloadJob>> inbox{1};
  pthread_t handle{};
  std::atomic<const ThreadWatch*> watch = nullptr;  // until the thread ends; null: it has not begun
  // Loop thread only.
  bool busy = false;
  std::uint64_t job_number = 0;        // of what it is busy with
  TimePoint since{};           // it has been busy
  Duration computed_before{};  // when that began
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
bool OffloadPool::drop_unwanted(const JobPtr& waiting) {
  if (waiting.use_count() == 1) return true;
  if (!waiting->gone()) return false;
  dropped_.add();
  waiting->give_up(detail::client_left());
  waiting->finish();
  return true;
}

OffloadPool::Queue::iterator OffloadPool::take_out(Line& line, Queue& queue, Queue::iterator place) {
  --waiting_;
  line.bytes -= place->second->terms().bytes;
  waiting_bytes_ -= place->second->terms().bytes;
  if (place->second->terms().can_wait >= kLong) --waiting_long_;
  return queue.erase(place);
}

// Whether a client left is known a turn after it was first asked, so this is not put off until there is no place.
void OffloadPool::sweep() {
  unswept_ = 0;
  for (auto& [owner, line] : lines_) {
    for (Queue* queue : {&line.brief, &line.lengthy}) {
      for (auto place = queue->begin(); place != queue->end();) {
        place = drop_unwanted(place->second) ? take_out(line, *queue, place) : std::next(place);
      }
    }
  }
}

bool OffloadPool::fits(const OffloadTerms& terms) const {
  if (waiting_ >= options_.queue_jobs) return false;
  if (waiting_ > 0 && waiting_bytes_ + terms.bytes > options_.queue_bytes) return false;
  return terms.can_wait < kLong || waiting_long_ < std::max<std::size_t>(options_.queue_jobs / 2, 1);
}

// Takes the newest jobs of the owner that has the most of what is scarce, as long as the one that comes has less.
bool OffloadPool::make_room(const OffloadTerms& terms) {
  while (!fits(terms)) {
    const bool bytes = waiting_ < options_.queue_jobs && waiting_bytes_ + terms.bytes > options_.queue_bytes;
    const bool jobs = waiting_ >= options_.queue_jobs;
    const auto has = [=](const Line& line) {
      if (bytes) return line.bytes;
      return jobs ? line.waiting() : line.lengthy.size();
    };
    const auto most = std::ranges::max_element(lines_, {}, [&](const auto& entry) { return has(entry.second); });
    const auto own = lines_.find(terms.owner);
    const std::size_t then = (own != lines_.end() ? has(own->second) : 0) + (bytes ? terms.bytes : 1);
    if (most == lines_.end() || has(most->second) <= then) return false;
    Queue& queue = most->second.lengthy.empty() ? most->second.brief : most->second.lengthy;
    const JobPtr last = std::prev(queue.end())->second;
    take_out(most->second, queue, std::prev(queue.end()));
    refused_.add();
    last->give_up(detail::queue_full());
    last->finish();
  }
  return true;
}

OffloadPool::Line& OffloadPool::line_of(std::uint32_t owner) {
  const auto [place, is_new] = lines_.try_emplace(owner);
  if (is_new && lines_.size() > 1) {
    Duration least = Duration::max();
    for (const auto& [other, line] : lines_) {
      if (other != owner) least = std::min(least, line.served);
    }
    place->second.served = least;
  }
  return place->second;
}

bool OffloadPool::submit(JobPtr job) {
  const OffloadTerms& terms = job->terms();
  const bool is_long = terms.can_wait >= kLong;
  const std::size_t half = options_.queue_jobs / 2;
  ++unswept_;
  const bool scarce = waiting_ >= half || (is_long && waiting_long_ >= half / 2);
  if ((scarce || !fits(terms)) && unswept_ >= waiting_ / 16) sweep();
  if (!make_room(terms)) {
    refused_.add();
    return false;
  }
  jobs_.add();
  job->number = ++newest_;
  if (is_long) long_jobs_.add();
  ++waiting_;
  waiting_bytes_ += terms.bytes;
  if (is_long) ++waiting_long_;
  Line& line = line_of(terms.owner);
  line.bytes += terms.bytes;
  const TimePoint due = clock_.now() + terms.can_wait;
  // A connection looks whether its client leaves from when it is first asked: not when the turn of the job has come.
  if (terms.gone) terms.gone();
  (is_long ? line.lengthy : line.brief).emplace(due, std::move(job));
  hand_out();
  return true;
}

// The queue whose first job is the next of this line; null: none may run now.
OffloadPool::Queue* OffloadPool::next_queue(Line& line) const {
  const bool long_may = !line.lengthy.empty() && (threads_.size() == 1 || long_running_ + 1 < threads_.size());
  if (long_may && (line.brief.empty() || line.lengthy.begin()->first < line.brief.begin()->first)) return &line.lengthy;
  return line.brief.empty() ? nullptr : &line.brief;
}

OffloadPool::Lines::iterator OffloadPool::next_line() {
  auto best = lines_.end();
  for (auto place = lines_.begin(); place != lines_.end();) {
    Line& line = place->second;
    for (Queue* queue : {&line.brief, &line.lengthy}) {
      while (!queue->empty() && drop_unwanted(queue->begin()->second)) take_out(line, *queue, queue->begin());
    }
    if (line.waiting() == 0 && line.running == 0) {
      place = lines_.erase(place);
      continue;
    }
    const auto rank = [](const Line& one) { return std::pair(one.running, one.served); };
    if (next_queue(line) != nullptr && (best == lines_.end() || rank(line) < rank(best->second))) best = place;
    ++place;
  }
  return best;
}

void OffloadPool::hand_out() {
  for (const auto& thread : threads_) {
    if (thread->busy) continue;
    const auto next = next_line();
    if (next == lines_.end()) break;
    Line& line = next->second;
    Queue& queue = *next_queue(line);
    thread->busy = true;
    thread->since = clock_.now();
    const ThreadWatch* const watch = thread->watch;
    thread->computed_before = watch != nullptr ? watch->computed() : Duration::zero();
    thread->runs_long = &queue == &line.lengthy;
    if (thread->runs_long) ++long_running_;
    ++line.running;
    JobPtr job = queue.begin()->second;
    thread->job_number = job->number;
    take_out(line, queue, queue.begin());
    thread->inbox.push(std::move(job));
  }
  queued_.set(static_cast<std::int64_t>(waiting_));
}

void OffloadPool::job_done(std::size_t thread, const JobPtr& job, Duration took) {
  threads_[thread]->busy = false;
  if (std::exchange(threads_[thread]->runs_long, false)) --long_running_;
  Line& line = lines_.at(job->terms().owner);
  --line.running;
  line.served += took;
  job->finish();
  hand_out();
}

bool OffloadPool::ended_until(std::uint64_t number) const {
  const auto before = [number](const auto& waiting) { return waiting.second->number <= number; };
  const auto waits = [&before](const auto& line) {
    return std::ranges::any_of(line.second.brief, before) || std::ranges::any_of(line.second.lengthy, before);
  };
  const auto runs = [number](const auto& thread) { return thread->busy && thread->job_number <= number; };
  return std::ranges::none_of(lines_, waits) && std::ranges::none_of(threads_, runs);
}

std::size_t OffloadPool::stuck_threads(TimePoint now) const {
  const auto stuck = [&](const auto& thread) {
    if (!thread->busy || now - thread->since <= options_.stuck_after) return false;
    const ThreadWatch* const watch = thread->watch;
    if (watch == nullptr) return false;
    const bool slept = now - watch->waited() > options_.stuck_after && watch->sleeps();
    return slept || watch->computed() - thread->computed_before > options_.stuck_after;
  };
  return static_cast<std::size_t>(std::count_if(threads_.begin(), threads_.end(), stuck));
}

void OffloadPool::add_to(MetricsPage& page) const {
  metrics_.add_to(page);
  page.add_computed("chasqui_offload_stuck_threads", "Offload threads that one job has held for too long.",
                    [this] { return static_cast<double>(stuck_threads(clock_.now())); });
}

}  // namespace chasqui::net
