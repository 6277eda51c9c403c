// A crowd at the door of Admission, in virtual time.
#include <algorithm>
#include <cmath>
#include <queue>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/admission.h"

namespace chasqui {
namespace {

constexpr TimePoint kStart{};

// A node under a load that never lets up, in virtual time. Services take exponential time.
class Crowd {
 public:
  struct Plan {
    std::int32_t slots = 4;
    std::size_t queue = 16;
    double overload = 3;   // arrivals for each place that frees up
    double patient = 0.1;  // part of the clients that wait as told and come back, three times
    Duration slot_time = seconds(1);
    Duration length = seconds(1200);
  };
  struct Outcome {
    int fresh = 0, fresh_in = 0;
    int returns = 0, returns_in = 0;  // of those that had a reservation
    int patient = 0, patient_in = 0;  // clients
    double slots_busy = 0;
  };

  Crowd(const Plan& plan, std::uint64_t seed) : plan_(plan), random_(seed), admission_(config(plan)) {}

  Outcome run() {
    push(now_, Happening::arrival, 0, 0);
    while (!events_.empty() && events_.top().time < kStart + plan_.length) {
      const Coming next = events_.top();
      events_.pop();
      outcome_.slots_busy += to_seconds(next.time - now_) * running_;
      now_ = next.time;
      if (next.what == Happening::end) {
        end(next.request_hash);
      } else {
        come(next);
      }
    }
    outcome_.slots_busy /= to_seconds(plan_.length) * plan_.slots;
    return outcome_;
  }

 private:
  enum class Happening { arrival, comeback, end };
  struct Coming {
    TimePoint time;
    Happening what;
    RequestHash request_hash;
    int tries;
    bool reserved;
    bool operator<(const Coming& other) const { return time > other.time; }
  };

  static AdmissionConfig config(const Plan& plan) {
    AdmissionConfig config;
    config.slots = plan.slots;
    config.queue_requests = plan.queue;
    return config;
  }

  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  Duration exponential(double mean_seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-std::log(1 - uniform()) * mean_seconds));
  }
  double gap() const { return to_seconds(plan_.slot_time) / plan_.slots; }
  void push(TimePoint time, Happening what, RequestHash request_hash, int tries, bool reserved = false) {
    events_.push({time, what, request_hash, tries, reserved});
  }

  Load load() const {
    Load load;
    load.slots = plan_.slots;
    load.running = running_;
    load.waiting[1] = static_cast<std::int32_t>(waiting_.size());
    load.slot_time = plan_.slot_time;
    return load;
  }

  void come(const Coming& coming) {
    const bool fresh = coming.what == Happening::arrival;
    if (fresh) push(now_ + exponential(gap() / plan_.overload), Happening::arrival, coming.request_hash + 1, 0);
    const bool patient = fresh ? uniform() < plan_.patient : true;
    const std::size_t reservations = admission_.reservations();
    auto entry = admission_.enter({0, 0, coming.request_hash}, load(), now_);
    (fresh ? outcome_.fresh : outcome_.returns) += fresh || coming.reserved ? 1 : 0;
    outcome_.patient += fresh && patient ? 1 : 0;
    if (entry) {
      (fresh ? outcome_.fresh_in : outcome_.returns_in) += fresh || coming.reserved ? 1 : 0;
      outcome_.patient_in += patient ? 1 : 0;
      permits_.emplace(coming.request_hash, std::move(*entry));
      waiting_.push(coming.request_hash);
      start();
    } else if (patient && coming.tries < 3) {
      const Duration way = exponential(0.02);
      push(now_ + entry.error().retry_after + way, Happening::comeback, coming.request_hash, coming.tries + 1,
           admission_.reservations() > reservations);
    }
  }

  void start() {
    while (running_ < plan_.slots && !waiting_.empty()) {
      ++running_;
      push(now_ + exponential(to_seconds(plan_.slot_time)), Happening::end, waiting_.front(), 0);
      waiting_.pop();
    }
  }

  void end(RequestHash request_hash) {
    --running_;
    permits_.erase(request_hash);
    start();
  }

  const Plan plan_;
  std::mt19937_64 random_;
  Admission admission_;
  TimePoint now_ = kStart;
  std::priority_queue<Coming> events_;
  std::queue<RequestHash> waiting_;
  std::unordered_map<RequestHash, Permit> permits_;
  std::int32_t running_ = 0;
  Outcome outcome_;
};

std::ostream& operator<<(std::ostream& out, const Crowd::Outcome& o) {
  return out << o.fresh_in << " of " << o.fresh << " fresh, " << o.returns_in << " of " << o.returns << " returns, "
             << o.patient_in << " of " << o.patient << " patient clients came in; slots busy " << o.slots_busy;
}

TEST(AdmissionCrowd, AClientThatWaitsAsToldGetsIn) {
  for (const double patient : {0.01, 0.1}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Crowd::Plan plan;
      plan.patient = patient;
      const Crowd::Outcome outcome = Crowd(plan, seed).run();
      SCOPED_TRACE(::testing::Message() << "patient " << patient << ", seed " << seed << ": " << outcome);
      EXPECT_GE(outcome.returns_in, 0.9 * outcome.returns);
      EXPECT_GE(outcome.patient_in, 0.98 * outcome.patient);
      EXPECT_GE(outcome.fresh_in, 0.2 * outcome.fresh) << "a third is all that there is room for";
      EXPECT_GE(outcome.slots_busy, 0.99);
    }
  }
}

TEST(AdmissionCrowd, MorePatientClientsThanThereIsRoomForGetWhatTheyWerePromised) {
  Crowd::Plan plan;
  plan.slots = 16;
  plan.queue = 64;
  plan.slot_time = milliseconds(200);
  plan.patient = 1;
  plan.length = seconds(600);
  const Crowd::Outcome outcome = Crowd(plan, 1).run();
  SCOPED_TRACE(::testing::Message() << outcome);
  EXPECT_GE(outcome.returns_in, 0.8 * outcome.returns);
  EXPECT_GE(outcome.slots_busy, 0.99);
}

TEST(AdmissionCrowd, ClientsThatNeverComeBackDoNotKeepOthersOut) {
  for (const std::size_t queue : {0, 1, 16}) {
    Crowd::Plan plan;
    plan.queue = queue;
    plan.patient = 0;
    const Crowd::Outcome outcome = Crowd(plan, 1).run();
    SCOPED_TRACE(::testing::Message() << outcome);
    EXPECT_GE(outcome.fresh_in, 0.25 * outcome.fresh);
    EXPECT_GE(outcome.slots_busy, queue > 1 ? 0.99 : 0.8);
  }
}

}  // namespace
}  // namespace chasqui
