// delivery_cost: what it costs to tell many readers of a step of the model, in four ways. One thread is the worker: at
// every step it has an event for each reader. The readers are, by turns,
//   outbox            one mailbox and one eventfd for all, a loop that hands the events out: what Chasqui does
//   eventfd each      a mailbox and an eventfd for each reader, all in one epoll of a loop
//   condition each    a thread for each reader, that sleeps in a mailbox of its own
//   condition of all  a thread for each reader, one queue and one condition variable that wakes all of them
// Steps come at a fixed pace, as those of a model do, so that readers sleep in between. Printed are, for each token,
// the worker's own time (during which the model stands still), the CPU time of the whole process, and how long after
// the step the last reader had its event.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/wakeup.h"
#include "core/event.h"

namespace {

using chasqui::Duration;
using chasqui::Event;
using chasqui::Mailbox;
using chasqui::milliseconds;
using chasqui::RealClock;
using chasqui::TimePoint;
using chasqui::to_milliseconds;
using chasqui::Wait;
using chasqui::Wakeup;

constexpr std::size_t kCapacity = 1 << 20;
constexpr std::size_t kWarmUp = 20;  // steps that do not count

struct Load {
  std::size_t readers = 1;
  std::size_t steps = 400;
  Duration pace = milliseconds(5);
};

// What a reader does with an event, and when the step was told to all of them.
class Readers {
 public:
  explicit Readers(std::size_t count) : count_(count), texts_(count) {}

  void take(Event& event) {
    std::string& text = texts_[static_cast<std::size_t>(event.request.value)];
    if (text.size() > 4096) text.clear();
    text += event.text;
    if (taken_.fetch_add(1, std::memory_order_acq_rel) + 1 == due_.load(std::memory_order_acquire)) {
      told_.store(clock_.now().time_since_epoch().count(), std::memory_order_release);
      told_.notify_one();
    }
  }
  // Of the next step.
  void begin_step() {
    told_.store(0, std::memory_order_relaxed);
    due_.fetch_add(count_, std::memory_order_acq_rel);
  }
  // Waits until all of them have it.
  Duration told() const {
    told_.wait(0, std::memory_order_acquire);
    return Duration(told_.load(std::memory_order_acquire));
  }

 private:
  const std::size_t count_;
  const RealClock clock_;
  std::vector<std::string> texts_;  // each is touched by one thread
  std::atomic<std::size_t> taken_{0};
  std::atomic<std::size_t> due_{0};
  std::atomic<Duration::rep> told_{0};
};

// How the events of a step come to their readers. Its threads end with it.
class Delivery {
 public:
  virtual ~Delivery() = default;
  // On the worker's thread; empties `events`.
  virtual void deliver(std::vector<Event>& events) = 0;
};

class Outbox final : public Delivery {
 public:
  explicit Outbox(Readers& readers) : readers_(readers), outbox_(kCapacity, [this] { wakeup_.signal(); }) {
    epoll_event interest{.events = EPOLLIN, .data = {}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_.fd(), &interest);
    loop_ = std::jthread([this] { run(); });
  }
  ~Outbox() override {
    ends_ = true;
    wakeup_.signal();
    loop_.join();
    ::close(epoll_);
  }
  void deliver(std::vector<Event>& events) override { outbox_.push_all(events); }

 private:
  void run() {
    std::vector<Event> events;
    for (epoll_event ready{}; !ends_;) {
      ::epoll_wait(epoll_, &ready, 1, -1);
      wakeup_.acknowledge();
      outbox_.drain(events);
      for (Event& event : events) readers_.take(event);
    }
  }

  Readers& readers_;
  Wakeup wakeup_;
  Mailbox<Event> outbox_;
  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::atomic<bool> ends_{false};
  std::jthread loop_;
};

class EventfdEach final : public Delivery {
 public:
  EventfdEach(Readers& readers, std::size_t count) : readers_(readers) {
    for (std::size_t i = 0; i < count; ++i) {
      desks_.push_back(std::make_unique<Desk>());
      epoll_event interest{.events = EPOLLIN, .data = {.u64 = i}};
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, desks_.back()->wakeup.fd(), &interest);
    }
    loop_ = std::jthread([this] { run(); });
  }
  ~EventfdEach() override {
    ends_ = true;
    desks_.front()->wakeup.signal();
    loop_.join();
    ::close(epoll_);
  }
  void deliver(std::vector<Event>& events) override {
    for (Event& event : events) desks_[static_cast<std::size_t>(event.request.value)]->mailbox.push(std::move(event));
    events.clear();
  }

 private:
  struct Desk {
    Wakeup wakeup;
    Mailbox<Event> mailbox{kCapacity, [this] { wakeup.signal(); }};
  };

  void run() {
    std::vector<Event> events;
    std::vector<epoll_event> ready(desks_.size());
    while (!ends_) {
      const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), -1);
      for (int i = 0; i < count; ++i) {
        Desk& desk = *desks_[ready[static_cast<std::size_t>(i)].data.u64];
        desk.wakeup.acknowledge();
        desk.mailbox.drain(events);
        for (Event& event : events) readers_.take(event);
      }
    }
  }

  Readers& readers_;
  std::vector<std::unique_ptr<Desk>> desks_;
  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::atomic<bool> ends_{false};
  std::jthread loop_;
};

class ConditionEach final : public Delivery {
 public:
  ConditionEach(Readers& readers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) mailboxes_.push_back(std::make_unique<Mailbox<Event>>(kCapacity));
    for (auto& mailbox : mailboxes_) {
      threads_.emplace_back([this, &readers, &box = *mailbox] {
        std::vector<Event> events;
        while (!ends_) {
          box.drain(events, Wait::yes);
          for (Event& event : events) readers.take(event);
        }
      });
    }
  }
  ~ConditionEach() override {
    ends_ = true;
    for (auto& mailbox : mailboxes_) mailbox->close();
    threads_.clear();
  }
  void deliver(std::vector<Event>& events) override {
    for (Event& event : events) mailboxes_[static_cast<std::size_t>(event.request.value)]->push(std::move(event));
    events.clear();
  }

 private:
  std::atomic<bool> ends_{false};
  std::vector<std::unique_ptr<Mailbox<Event>>> mailboxes_;
  std::vector<std::jthread> threads_;
};

class ConditionOfAll final : public Delivery {
 public:
  ConditionOfAll(Readers& readers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, &readers, mine = static_cast<std::uint64_t>(i)] { run(readers, mine); });
    }
  }
  ~ConditionOfAll() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    ready_.notify_all();
    threads_.clear();
  }
  // One result after the other, each with a call for everybody.
  void deliver(std::vector<Event>& events) override {
    for (Event& event : events) {
      {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(event));
      }
      ready_.notify_all();
    }
    events.clear();
  }

 private:
  void run(Readers& readers, std::uint64_t mine) {
    std::unique_lock lock(mutex_);
    for (;;) {
      auto found = queue_.end();
      ready_.wait(lock, [&] {
        found = std::ranges::find(queue_, mine, [](const Event& event) { return event.request.value; });
        return ends_ || found != queue_.end();
      });
      if (found == queue_.end()) return;
      Event event = std::move(*found);
      queue_.erase(found);
      lock.unlock();
      readers.take(event);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Event> queue_;
  bool ends_ = false;
  std::vector<std::jthread> threads_;
};

struct Way {
  const char* name;
  std::function<std::unique_ptr<Delivery>(Readers&, std::size_t)> make;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"outbox", [](Readers& readers, std::size_t) { return std::make_unique<Outbox>(readers); }},
      {"eventfd each", [](Readers& readers, std::size_t n) { return std::make_unique<EventfdEach>(readers, n); }},
      {"condition each", [](Readers& readers, std::size_t n) { return std::make_unique<ConditionEach>(readers, n); }},
      {"condition of all",
       [](Readers& readers, std::size_t n) { return std::make_unique<ConditionOfAll>(readers, n); }}};
  return all;
}

double cpu_microseconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec); };
  return of(used.ru_utime) + of(used.ru_stime);
}

double at(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(static_cast<double>(values.size() - 1) * share)];
}

void measure(const Way& way, const Load& load) {
  const RealClock clock;
  Readers readers(load.readers);
  const std::unique_ptr<Delivery> delivery = way.make(readers, load.readers);
  std::vector<Event> events;
  std::vector<double> own, late;
  double cpu = 0;
  TimePoint next = clock.now();
  for (std::size_t step = 0; step < kWarmUp + load.steps; ++step) {
    if (step == kWarmUp) cpu = cpu_microseconds();
    for (std::size_t i = 0; i < load.readers; ++i) {
      Event event;
      event.request.value = i;
      event.text = " token";
      events.push_back(std::move(event));
    }
    readers.begin_step();
    const TimePoint begin = clock.now();
    delivery->deliver(events);
    const TimePoint end = clock.now();
    next = std::max(next + load.pace, end);
    std::this_thread::sleep_until(next);
    const Duration told = readers.told();
    if (step < kWarmUp) continue;
    own.push_back(to_milliseconds(end - begin) * 1e3 / static_cast<double>(load.readers));
    late.push_back(to_milliseconds(told - begin.time_since_epoch()) * 1e3);
  }
  const double spent = (cpu_microseconds() - cpu) / static_cast<double>(load.steps * load.readers);
  std::printf("| %zu | %s | %.2f | %.2f | %.0f | %.0f |\n", load.readers, way.name, at(own, 0.5), spent, at(late, 0.5),
              at(late, 0.99));
  std::fflush(stdout);
}

}  // namespace

// delivery_cost [STEPS [PACE_MS]]
int main(int argc, char** argv) {
  Load load;
  if (argc > 1) load.steps = std::strtoul(argv[1], nullptr, 10);
  if (argc > 2) load.pace = milliseconds(std::strtol(argv[2], nullptr, 10));
  if (load.steps == 0 || load.pace < Duration::zero()) {
    std::fprintf(stderr, "usage: delivery_cost [STEPS [PACE_MS]]\n");
    return 2;
  }
  std::printf("| readers | way | worker, µs/token | process CPU, µs/token | last has it after, µs, p50 | … p99 |\n");
  std::printf("|---:|---|---:|---:|---:|---:|\n");
  for (const std::size_t readers : {1, 16, 64, 256}) {
    load.readers = readers;
    for (const Way& way : ways()) measure(way, load);
  }
  return 0;
}
