// Decides which requests come in, before a worker gets them; the others are told when to come back:
// 429 when the tenant has too many requests in flight, 503 when this node has, or when a limit on the wait is not met.
//
// A client that is refused since the queue is full, or the wait too long, gets a reservation in the queue behind the
// queue (engine/retry_reservations.h): the k-th is told a time k places later, so that those who come back do not come
// together. A place frees up every slot_time / slots. From the time that it should be free, the place is held: fresh
// requests cannot take it. Not everybody comes back; places are held, and times told, for the share that lately did.
//
// One tenant cannot fill the queue for the others: an eighth of all places, and of the prompt tokens that may wait, is
// there beside the limits for tenants that have less than that share here, whatever others hold or have reserved.
//
// Pure: time and load are arguments. Loop thread only. Outlives its permits.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/metric_set.h"
#include "core/load.h"
#include "core/types.h"
#include "engine/retry_reservations.h"

namespace chasqui {

struct AdmissionConfig {
  std::int32_t slots = 1;
  std::size_t queue_requests =
      kSizeLimit<"queue_requests">;  // requests that may wait, those that are still being read included
  std::int64_t queue_tokens = kCountLimit<"queue_tokens">;  // prompt tokens that may wait; 0: no limit
  // Longest predicted wait for a first token, of each class; zero, as is the default: no limit.
  std::array<Duration, kServiceClasses> queue_wait{};
  std::size_t reservations_max = kSizeLimit<"retry_reservations">;

  std::size_t places() const { return static_cast<std::size_t>(slots) + queue_requests; }
  // Kept for tenants that have fewer requests than this in flight.
  std::size_t places_for_few() const { return (places() + kShare - 1) / kShare; }
  std::int64_t tokens_for_few() const { return queue_tokens / static_cast<std::int64_t>(kShare); }

  static constexpr std::size_t kShare = 8;
};

// Who asks to come in.
struct Applicant {
  std::uint32_t tenant = 0;
  std::size_t requests_max = 0;  // of this tenant, in flight at once; 0: no limit
  RequestHash request_hash = 0;
};

enum class Refusal { draining, tenant_requests, queue_requests, queue_tokens, queue_wait, ttft_timeout };
constexpr std::size_t kRefusals = 6;
std::string_view name(Refusal refusal);

struct AdmissionMetrics : MetricSet {
  MetricArray<Counter, kRefusals> refused{*this, [](std::size_t i) {  // indexed by Refusal
                                            return MetricRow("chasqui_requests_refused_total",
                                                             "Requests refused at the door, by reason.",
                                                             metric_label("reason", name(static_cast<Refusal>(i))));
                                          }};
  Counter reservations_made{*this,
                            {"chasqui_retry_reservations_total", "Retry reservations, by state.", "state=\"made\""}};
  Counter reservations_claimed{*this, {"chasqui_retry_reservations_total", {}, "state=\"claimed\""}};
  Counter reservations_expired{*this, {"chasqui_retry_reservations_total", {}, "state=\"expired\""}};
  // The client came when told and found no place; it keeps its turn.
  Counter reservations_late{*this, {"chasqui_retry_reservations_total", {}, "state=\"late\""}};
};

class Admission;

// The right of one client's request, or of the several that it asks for at once, to be here. Gives its place back when
// it goes.
class Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept { *this = std::move(other); }
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { release(); }

  void release();
  bool valid() const { return admission_ != nullptr; }

 private:
  friend class Admission;
  Permit(Admission& admission, const Applicant& applicant, TimePoint entered, bool kept)
      : admission_(&admission), applicant_(applicant), entered_(entered), kept_(kept) {}

  Admission* admission_ = nullptr;
  Applicant applicant_;
  TimePoint entered_{};
  std::size_t more_ = 0;   // requests beyond the first
  TokenCount tokens_ = 0;  // of its prompts, once weighed
  bool kept_ = false;      // came back for a reserved place
  bool weighed_ = false;   // on its way to the worker, or there
  bool aside_ = false;     // takes no slot
};

class Admission {
 public:
  explicit Admission(const AdmissionConfig& config) : config_(config), reservations_(config.reservations_max) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Before the body is read into a prompt. Errors: quota_exceeded, overloaded, unavailable, with retry_after.
  Result<Permit> enter(const Applicant& applicant, const Load& load, TimePoint now);
  // A request that takes neither a slot nor a place in the queue, such as one that counts tokens. A tenant may have as
  // many of them in flight as of the others, also while the server drains. Errors: quota_exceeded, with retry_after.
  Result<Permit> enter_aside(const Applicant& applicant, TimePoint now);
  // When its prompt is known and before it goes to the engine; drop the permit when the answer is an error. One that
  // wants several answers counts as so many `requests` from here on; it is let in whole or not at all, and where no
  // request else is, however many they are. `wait_max` is the longest wait for a first token that the client accepts.
  Result<void> weigh(Permit& permit, ServiceClass service_class, TokenCount prompt_tokens, const Load& load,
                     TimePoint now, std::size_t requests = 1, Duration wait_max = Duration::max());
  // From now on all are refused that want a slot.
  void drain() { draining_ = true; }
  void resume() { draining_ = false; }
  bool draining() const { return draining_; }

  std::size_t in_flight() const { return in_flight_; }
  std::size_t reservations() const { return reservations_.open(); }
  // Of the clients with a reservation whose time has come lately, how many came back; 0 … 1.
  double share_that_returns() const { return share_that_returns_; }
  const AdmissionConfig& config() const { return config_; }
  const AdmissionMetrics& metrics() const { return metrics_; }
  // No metric is labelled with a tenant: tenants come and go with the key file, and a scraper need not know
  // who they are. The largest of them shows whether one of them fills the server.
  void add_to(MetricsPage& page) const;

 private:
  friend class Permit;

  struct TenantState {
    std::multiset<TimePoint> entered;  // its requests in flight
    std::size_t aside = 0;             // … that take no slot
    std::int64_t tokens = 0;           // of the prompts of those that went to the worker
    TimePoint told{};                  // the latest time that one of its refused requests was told
  };
  // Went to the worker after it published the load that is at hand.
  struct Recent {
    ServiceClass service_class;
    TokenCount tokens;
  };

  std::size_t places() const { return config_.places(); }
  bool has_places(const Applicant& applicant, std::size_t more, std::size_t held) const;
  Duration gap(const Load& load) const;  // from one place that frees up to the next
  std::size_t places_held() const;
  void advance(TimePoint now);
  void leave(const Permit& permit);
  void forget_recent(const Load& load);

  Duration forecast(const Permit& permit, ServiceClass service_class, TokenCount tokens, const Load& load) const;
  Result<void> widen(Permit& permit, std::size_t requests, const Load& load, TimePoint now);
  Permit admit(const Applicant& applicant, TimePoint now, bool kept);
  void claim(const Reservation& reservation);
  void count_return(double came);  // 1: it came back, 0: it did not
  Error refuse_tenant(const Applicant& applicant, TenantState& tenant, const Load& load, TimePoint now);
  Duration turn_of(const Applicant& applicant, const Load& load, TimePoint now);
  // Promises a place that should be free `position` gaps after `start` from now, and says how long to wait for it.
  Duration reserve(RequestHash request_hash, Duration start, double position, const Load& load, TimePoint now);
  Error refuse(Refusal refusal, Duration retry_after, std::size_t limit = 0);

  const AdmissionConfig config_;
  AdmissionMetrics metrics_;
  RetryReservations reservations_;
  std::unordered_map<std::uint32_t, TenantState> tenants_;  // those with requests in flight
  std::size_t in_flight_ = 0;
  std::size_t weighed_ = 0;  // of those, the ones that went to the worker
  std::deque<Recent> recent_;
  std::int64_t recent_tokens_ = 0;  // of all of them
  double share_that_returns_ = 1;
  bool draining_ = false;
};

}  // namespace chasqui
