// The cores of the machine, shared by the contexts that compute: who has decoded lately gets an equal part of them, and
// who is alone gets all. Made by the application, outlives the models. Any thread; a decode costs two stores and a look
// at each context, no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace chasqui {

class CoreShare {
 public:
  // A context goes on counting for so long after its decode, since the next one follows most of the time. Longer than
  // sampling and planning take, shorter than a client needs to ask again.
  static constexpr Duration kLinger = milliseconds(20);

  // `contexts`: so many may be there at once.
  CoreShare(std::int32_t cores, std::size_t contexts);
  CoreShare(const CoreShare&) = delete;
  CoreShare& operator=(const CoreShare&) = delete;

  std::int32_t cores() const { return cores_; }

  // Compute threads that a context may use for a decode that begins now, at least one.
  std::int32_t part(TimePoint now) const;

  // The same for work of low priority, which gives way to contexts that decode: one while any has lately.
  std::int32_t spare(TimePoint now) const;

  // Such work, as long as it computes.
  class Beside {
   public:
    explicit Beside(CoreShare& share) : share_(share) { share_.beside_.fetch_add(1, std::memory_order_relaxed); }
    ~Beside() { share_.beside_.fetch_sub(1, std::memory_order_relaxed); }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

   private:
    CoreShare& share_;
  };

  // One context's place among the others, as long as it lives. Its thread only.
  class Place {
   public:
    // REQUIRES: no more than `contexts` of them
    explicit Place(CoreShare& share);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void begin_decode();
    void end_decode(TimePoint now);

   private:
    std::atomic<std::int64_t>& until_;
  };

  // One core that something computes on without asking: a model that is loaded or freed.
  class Taken {
   public:
    explicit Taken(CoreShare& share) : share_(share) { share_.taken_.fetch_add(1, std::memory_order_relaxed); }
    ~Taken() { share_.taken_.fetch_sub(1, std::memory_order_relaxed); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

   private:
    CoreShare& share_;
  };

 private:
  std::int32_t computing(TimePoint now) const;
  std::atomic<std::int64_t>& free_place();

  const std::int32_t cores_;
  std::atomic<std::int32_t> taken_{0};
  std::atomic<std::int32_t> beside_{0};
  // Until when each context counts, in ticks of the clock.
  std::vector<std::atomic<std::int64_t>> until_;
};

}  // namespace chasqui
