#include "engine/admission.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

namespace chasqui {
namespace {

// The official clients of OpenAI obey at most a minute and come back after seconds when they are told more. A client
// that has to wait longer is told this, comes back too early, and is told the rest.
constexpr Duration kToldMax = seconds(60);
constexpr Duration kToldMin = milliseconds(100);
// How long a place is held after the client was due: one second for clients that round up, one for its way here, and
// a part for clients that add some jitter.
constexpr Duration kGrace = seconds(2);
constexpr int kGracePart = 10;
// What finishes takes its time at random, so n places are free after n gaps in half of all cases. Clients are told the
// time by which it is nine of ten: this many square roots of n later.
constexpr double kMargin = 1.3;
// Equal requests within this time come from different clients; later, from one that did not wait.
constexpr Duration kSameMoment = milliseconds(250);
// How long a sequence holds its slot when none has ended yet.
constexpr Duration kSlotTimeUnknown = seconds(1);
// The next process is up, or another node has taken over.
constexpr Duration kRetryAfterDrain = seconds(5);
// The share of those that return is averaged over the reservations that are open now and this many more.
constexpr double kShareOver = 32;
// A client with a reservation is let in where there is somewhat more than when it was made. For tokens the limit is
// stretched by this; for waits it is exact, so new clients keep within this part of it.
constexpr double kKeptStretch = 1.5;

Duration times(Duration one, double n) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, Duration::period>(one) * n);
}

Duration told(Duration wait) { return std::clamp(wait, kToldMin, kToldMax); }

std::int64_t waiting_of(const Load& load) {
  std::int64_t sum = 0;
  for (const std::int32_t waiting : load.waiting) sum += waiting;
  return sum;
}

Duration slot_time_of(const Load& load) {
  return load.slot_time > Duration::zero() ? load.slot_time : kSlotTimeUnknown;
}

std::string in_seconds(Duration wait) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.1f s", to_seconds(wait));
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string_view reason_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::draining: return "the server is shutting down or drained; retry elsewhere, or here";
    case Refusal::tenant_requests: return "this key's limit of requests at the same time is reached; retry";
    case Refusal::queue_requests: return "too many requests are waiting; retry";
    case Refusal::queue_tokens: return "the requests that are waiting have too many tokens to read; retry";
    case Refusal::queue_wait: return "the wait would be too long; retry";
    case Refusal::ttft_timeout: return "the first token would come later than ttft_timeout_ms allows; retry";
  }
  return "";
}

ErrorCode code_of(Refusal refusal) {
  if (refusal == Refusal::draining) return ErrorCode::unavailable;
  return refusal == Refusal::tenant_requests ? ErrorCode::quota_exceeded : ErrorCode::overloaded;
}

}  // namespace

std::string_view name(Refusal refusal) {
  constexpr std::array<std::string_view, kRefusals> kNames = {"draining",     "tenant_requests", "queue_requests",
                                                              "queue_tokens", "queue_wait",      "ttft_timeout"};
  return kNames[static_cast<std::size_t>(refusal)];
}

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  release();
  admission_ = std::exchange(other.admission_, nullptr);
  applicant_ = other.applicant_;
  entered_ = other.entered_;
  more_ = other.more_;
  tokens_ = other.tokens_;
  kept_ = other.kept_;
  weighed_ = other.weighed_;
  aside_ = other.aside_;
  return *this;
}

void Permit::release() {
  if (admission_ != nullptr) std::exchange(admission_, nullptr)->leave(*this);
}

Result<Permit> Admission::enter(const Applicant& applicant, const Load& load, TimePoint now) {
  advance(now);
  if (draining_) return refuse(Refusal::draining, kRetryAfterDrain);
  const auto tenant = tenants_.find(applicant.tenant);
  if (tenant != tenants_.end() && applicant.requests_max > 0 &&
      tenant->second.entered.size() >= applicant.requests_max) {
    return refuse_tenant(applicant, tenant->second, load, now);
  }
  const Reservation* const reservation = reservations_.first(applicant.request_hash);
  const bool kept = reservation != nullptr && reservation->hold_from <= now;
  if (has_places(applicant, 1, kept ? 0 : places_held())) {
    if (reservation != nullptr) claim(*reservation);
    return admit(applicant, now, kept);
  }
  return refuse(Refusal::queue_requests, turn_of(applicant, load, now));
}

// Beside those that are held for others. A tenant that has few may have one of those kept for such.
bool Admission::has_places(const Applicant& applicant, std::size_t more, std::size_t held) const {
  if (in_flight_ + more + held <= places()) return true;
  const auto tenant = tenants_.find(applicant.tenant);
  const std::size_t own = tenant != tenants_.end() ? tenant->second.entered.size() : 0;
  const std::size_t few = config_.places_for_few();
  return own + more <= few && in_flight_ + more <= places() + few;
}

Result<Permit> Admission::enter_aside(const Applicant& applicant, TimePoint now) {
  TenantState& tenant = tenants_[applicant.tenant];
  if (applicant.requests_max > 0 && tenant.aside >= applicant.requests_max) {
    return refuse(Refusal::tenant_requests, kToldMin, applicant.requests_max);
  }
  ++tenant.aside;
  Permit permit(*this, applicant, now, false);
  permit.aside_ = true;
  return permit;
}

// When a refused applicant shall come back: a reservation it has already is not doubled.
Duration Admission::turn_of(const Applicant& applicant, const Load& load, TimePoint now) {
  const Reservation* const first = reservations_.first(applicant.request_hash);
  if (first != nullptr && first->due <= now) {
    // It waited as told, and the places are late. It keeps its turn among those.
    Reservation again = *first;
    if (!again.late) count_return(1);
    reservations_.remove(*first);
    metrics_.reservations_late.add();
    again.late = true;
    again.hold_from = now;
    again.due = now + std::max(times(gap(load), 1 + kMargin), kToldMin);
    again.expires = again.due + kGrace;
    reservations_.add(again);
    reservations_.advance(now);
    return told(again.due - now);
  }
  const Reservation* const last = reservations_.last(applicant.request_hash);
  if (last != nullptr && now - last->made >= kSameMoment) return told(first->due - now);
  const std::size_t free = places() - std::min(in_flight_, places());
  const double before = share_that_returns_ * static_cast<double>(reservations_.open());
  return reserve(applicant.request_hash, {}, std::max(0.0, before - static_cast<double>(free)) + 1, load, now);
}

Result<void> Admission::weigh(Permit& permit, ServiceClass service_class, TokenCount prompt_tokens, const Load& load,
                              TimePoint now, std::size_t requests, Duration wait_max) {
  CHECK(permit.admission_ == this && !permit.weighed_, "a permit is weighed once");
  advance(now);
  if (auto fits = widen(permit, requests, load, now); !fits) return fits.error();
  forget_recent(load);
  const std::int64_t waiting = waiting_of(load);
  const std::int64_t here = load.running + waiting + static_cast<std::int64_t>(recent_.size());
  const bool has_slot = here + static_cast<std::int64_t>(permit.more_) < static_cast<std::int64_t>(config_.slots);
  const double stretch = permit.kept_ ? kKeptStretch : 1;
  const double position = 1 + share_that_returns_ * static_cast<double>(reservations_.open());
  const std::int64_t tokens = load.waiting_tokens + recent_tokens_;
  const auto tokens_max = static_cast<double>(config_.queue_tokens) * stretch;
  const auto tokens_then = static_cast<double>(tokens + prompt_tokens);
  TenantState& tenant = tenants_.at(permit.applicant_.tenant);
  const std::int64_t few = config_.tokens_for_few();
  const bool among_few =
      tenant.tokens + prompt_tokens <= few && tokens_then <= static_cast<double>(config_.queue_tokens + few);
  if (!has_slot && config_.queue_tokens > 0 && tokens > 0 && tokens_then > tokens_max && !among_few) {
    const double part = std::min(1.0, (tokens_then - tokens_max) / static_cast<double>(tokens));
    const Duration start = times(gap(load), part * static_cast<double>(waiting));
    const Duration wait = reserve(permit.applicant_.request_hash, start, position, load, now);
    return refuse(Refusal::queue_tokens, wait);
  }
  const Duration limit = config_.queue_wait[static_cast<std::size_t>(service_class)];
  // Without a limit on the wait everyone may wait, and nothing has to be forecast.
  if (here > 0 && (limit > Duration::zero() || wait_max < Duration::max())) {
    const Duration wait = forecast(permit, service_class, prompt_tokens, load);
    if (wait > wait_max) return refuse(Refusal::ttft_timeout, told(wait - wait_max));
    const Duration fresh_max = times(limit, stretch / kKeptStretch);
    if (limit > Duration::zero() && wait > fresh_max) {
      const Duration turn = reserve(permit.applicant_.request_hash, wait - fresh_max, position, load, now);
      return refuse(Refusal::queue_wait, turn);
    }
  }
  permit.weighed_ = true;
  permit.tokens_ = prompt_tokens;
  tenant.tokens += prompt_tokens;
  weighed_ += 1 + permit.more_;
  const auto each = prompt_tokens / static_cast<TokenCount>(1 + permit.more_);
  for (std::size_t i = 0; i <= permit.more_; ++i) recent_.push_back({service_class, each});
  recent_tokens_ += static_cast<std::int64_t>(each) * static_cast<std::int64_t>(1 + permit.more_);
  return {};
}

// What the load says, and what those take that it does not show yet.
Duration Admission::forecast(const Permit& permit, ServiceClass service_class, TokenCount tokens,
                             const Load& load) const {
  std::int64_t tokens_before = 0;
  double before = permit.kept_ ? 0 : static_cast<double>(places_held());
  for (const Recent& recent : recent_) {
    if (recent.service_class > service_class) continue;
    tokens_before += recent.tokens;
    before += 1;
  }
  return load.wait_of(permit.applicant_.tenant, service_class, tokens, before, tokens_before);
}

Result<void> Admission::widen(Permit& permit, std::size_t requests, const Load& load, TimePoint now) {
  const std::size_t more = requests - 1;
  if (more == 0) return {};
  const Applicant& applicant = permit.applicant_;
  TenantState& tenant = tenants_.at(applicant.tenant);
  if (applicant.requests_max > 0 && requests > applicant.requests_max) {  // no retry would help
    return invalid_field("n", "the request has " + std::to_string(requests) +
                                  " answers (n for each prompt); this key may have at most " +
                                  std::to_string(applicant.requests_max) + " at the same time");
  }
  if (applicant.requests_max > 0 && tenant.entered.size() + more > applicant.requests_max) {
    return refuse_tenant(applicant, tenant, load, now);
  }
  const std::size_t held = permit.kept_ ? 0 : places_held();
  if (in_flight_ > 1 && !has_places(applicant, more, held)) {
    return refuse(Refusal::queue_requests, turn_of(applicant, load, now));
  }
  permit.more_ = more;
  in_flight_ += more;
  for (std::size_t i = 0; i < more; ++i) tenant.entered.insert(permit.entered_);
  return {};
}

Duration Admission::gap(const Load& load) const { return slot_time_of(load) / std::max(1, config_.slots); }

// Places in the queue are held, slots never: an idle slot serves any request. Nor are more than half of all places,
// so that new clients are served even if all others have reservations.
std::size_t Admission::places_held() const {
  const double expected = share_that_returns_ * static_cast<double>(reservations_.held());
  return std::min({static_cast<std::size_t>(std::ceil(expected)), config_.queue_requests, places() / 2});
}

void Admission::advance(TimePoint now) {
  const RetryReservations::Expired expired = reservations_.advance(now);
  metrics_.reservations_expired.add(expired.reservations);
  for (std::size_t i = 0; i < expired.never_came; ++i) count_return(0);
}

void Admission::claim(const Reservation& reservation) {
  if (!reservation.late) count_return(1);
  reservations_.remove(reservation);
  metrics_.reservations_claimed.add();
}

void Admission::count_return(double came) {
  share_that_returns_ += (came - share_that_returns_) / (kShareOver + static_cast<double>(reservations_.open()));
}

// The forecast knows of what the worker ran or let wait when it was made; the others are the latest that were sent.
void Admission::forget_recent(const Load& load) {
  const auto known = static_cast<std::size_t>(std::max<std::int64_t>(load.running + waiting_of(load) - load.newer, 0));
  const std::size_t unknown = weighed_ - std::min(weighed_, known);
  while (recent_.size() > unknown) {
    recent_tokens_ -= recent_.front().tokens;
    recent_.pop_front();
  }
}

Permit Admission::admit(const Applicant& applicant, TimePoint now, bool kept) {
  ++in_flight_;
  tenants_[applicant.tenant].entered.insert(now);
  return Permit(*this, applicant, now, kept);
}

void Admission::leave(const Permit& permit) {
  const auto tenant = tenants_.find(permit.applicant_.tenant);
  auto& entered = tenant->second.entered;
  if (permit.aside_) {
    --tenant->second.aside;
  } else {
    in_flight_ -= 1 + permit.more_;
    if (permit.weighed_) weighed_ -= 1 + permit.more_;
    tenant->second.tokens -= permit.tokens_;
    for (std::size_t i = 0; i <= permit.more_; ++i) entered.erase(entered.find(permit.entered_));
  }
  if (entered.empty() && tenant->second.aside == 0) tenants_.erase(tenant);
}

// The tenant's oldest request ends first, and then one after the other.
Error Admission::refuse_tenant(const Applicant& applicant, TenantState& tenant, const Load& load, TimePoint now) {
  const auto standard = static_cast<std::size_t>(ServiceClass::standard);
  const Duration life = slot_time_of(load) + load.wait.of_short[standard];
  const Duration one_more = life / static_cast<Duration::rep>(tenant.entered.size());
  const Duration first_end = *tenant.entered.begin() + life - now;
  const TimePoint turn = std::max(now + (first_end > Duration::zero() ? first_end : one_more), tenant.told + one_more);
  const Duration wait = told(turn - now);
  tenant.told = now + wait;
  return refuse(Refusal::tenant_requests, wait, applicant.requests_max);
}

Duration Admission::reserve(RequestHash request_hash, Duration start, double position, const Load& load,
                            TimePoint now) {
  const Duration one_place = gap(load);
  const Duration hold_in = start + times(one_place, position);
  const Duration due_in = hold_in + times(one_place, kMargin * std::sqrt(position));
  // No reservation is made too far ahead; but one request is always next.
  if (hold_in > std::max(kToldMax, 2 * one_place) || reservations_.full()) return kToldMax;
  Reservation reservation;
  reservation.request_hash = request_hash;
  reservation.made = now;
  reservation.hold_from = now + hold_in;
  reservation.due = now + std::clamp(due_in, kToldMin, std::max(kToldMax, hold_in));
  const Duration wait = reservation.due - now;
  reservation.expires = reservation.due + kGrace + wait / kGracePart;
  reservations_.add(reservation);
  metrics_.reservations_made.add();
  return told(wait);
}

Error Admission::refuse(Refusal refusal, Duration retry_after, std::size_t limit) {
  metrics_.refused[static_cast<std::size_t>(refusal)].add();
  Error error;
  error.code = code_of(refusal);
  error.message = std::string(reason_of(refusal)) + " in " + in_seconds(retry_after);
  if (limit > 0) error.message += " (the limit is " + std::to_string(limit) + ")";
  error.retry_after = retry_after;
  return error;
}

void Admission::add_to(MetricsPage& page) const {
  metrics_.add_to(page);
  page.add_computed("chasqui_requests_in_flight", "Requests that were admitted and have not ended.",
                    [this] { return static_cast<double>(in_flight_); });
  page.add_computed("chasqui_tenants_in_flight", "Tenants with requests in flight.",
                    [this] { return static_cast<double>(tenants_.size()); });
  page.add_computed("chasqui_tenant_requests_in_flight_max", "Requests in flight of the tenant that has most.", [this] {
    std::size_t most = 0;
    for (const auto& [id, tenant] : tenants_) most = std::max(most, tenant.entered.size());
    return static_cast<double>(most);
  });
  page.add_computed("chasqui_retry_reservations_open", "Retry reservations that are open.",
                    [this] { return static_cast<double>(reservations_.open()); });
  page.add_computed("chasqui_retry_reservations_claimed_ratio", "Share of retry reservations that were claimed.",
                    [this] { return share_that_returns_; });
}

}  // namespace chasqui
