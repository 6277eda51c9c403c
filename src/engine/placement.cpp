#include "engine/placement.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace chasqui {
namespace {

// Until the workers know better.
constexpr double kSlotSecondsUnknown = 1;
constexpr double kRowSecondsUnknown = 0.001;

// The mean of those that are known.
double mean_seconds(std::span<const WorkerState> workers, Duration Load::*time, double unknown) {
  double sum = 0;
  int known = 0;
  for (const WorkerState& worker : workers) {
    if (worker.load.*time <= Duration::zero()) continue;
    sum += to_seconds(worker.load.*time);
    ++known;
  }
  return known > 0 ? sum / known : unknown;
}

std::size_t heard_of(const Load& load) {
  return static_cast<std::size_t>(std::accumulate(load.waiting.begin(), load.waiting.end(), load.running));
}

}  // namespace

Placement::Placement(const PlacementConfig& config)
    : config_(config), sent_(config.workers, config.sent), shares_(config.workers) {
  CHECK(config.workers > 0 && config.slots > 0);
}

std::optional<Placement::Choice> Placement::place(const Request& request, std::span<const WorkerState> workers) {
  CHECK(workers.size() == shares_.size());
  if (request.pin != 0) {
    if (const auto found = pins_.find(request.pin); found != pins_.end()) {
      matched_.assign(shares_.size(), 0);
      assign(request, found->second);
      return Choice{found->second, Reason::pin};
    }
    if (pins_.size() >= config_.pins_max) return std::nullopt;
  }
  const std::size_t worker = best(request, workers);
  if (request.pin != 0) {
    pins_.emplace(request.pin, worker);
    ++shares_[worker].pins;
  }
  const Reason reason = matched_[worker] > 0 ? Reason::prefix : Reason::load;
  if (reason == Reason::load) turn_ = (worker + 1) % shares_.size();
  assign(request, worker);
  return Choice{worker, reason};
}

std::size_t Placement::best(const Request& request, std::span<const WorkerState> workers) {
  matched_.assign(shares_.size(), 0);
  if (request.use_cache) {
    sent_.match(key_of(request), request.prompt, matched_);
    for (TokenCount& matched : matched_) matched = matched < kWorthFollowing ? 0 : matched;
  }
  const Costs costs = Placement::costs(workers);
  const bool some_alive = std::ranges::any_of(workers, &WorkerState::alive);
  const std::size_t fewest_pins = std::ranges::min(shares_, {}, &Share::pins).pins;
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const std::size_t worker = (turn_ + i) % shares_.size();
    if (some_alive && !workers[worker].alive) continue;
    double cost = seconds_until_read(worker, request, workers[worker], costs);
    // It stays for life, and one of those that are here already will be in its way some day.
    const auto more_pins = static_cast<double>(shares_[worker].pins - fewest_pins);
    if (request.pin != 0) cost += costs.slot * more_pins / config_.slots;
    if (best && cost >= least) continue;
    best = worker;
    least = cost;
  }
  return *best;
}

Placement::Costs Placement::costs(std::span<const WorkerState> workers) {
  return {mean_seconds(workers, &Load::slot_time, kSlotSecondsUnknown),
          mean_seconds(workers, &Load::row_time, kRowSecondsUnknown)};
}

double Placement::seconds_until_read(std::size_t worker, const Request& request, const WorkerState& state,
                                     const Costs& costs) {
  Share& share = shares_[worker];
  // It heard of its requests in this order. Those that ended, and whose end is not known here yet, keep some too long.
  const std::size_t unheard = share.in_flight - std::min(share.in_flight, heard_of(state.load));
  while (share.unheard.size() > unheard) share.unheard.pop_front();
  const std::int64_t unread = std::accumulate(share.unheard.begin(), share.unheard.end(), state.load.tokens_to_prefill);
  // What is unread may be the very prefix that it shares, which is then read for both. Where it is not, this is in
  // favour of not computing things twice.
  const TokenCount matched = matched_[worker];
  const std::int64_t tokens = std::max<std::int64_t>(unread - matched, 0) + request.tokens() - matched;
  const auto in_flight = static_cast<double>(share.in_flight);
  // What has run for long will probably run as long again.
  const double until_free = in_flight < config_.slots ? 0 : std::max(costs.slot, to_seconds(state.held));
  return costs.slot * in_flight / config_.slots + until_free + costs.row * static_cast<double>(tokens);
}

void Placement::assign(const Request& request, std::size_t worker) {
  CHECK(requests_.emplace(request.id, worker).second, "a request is placed twice");
  Share& share = shares_[worker];
  ++share.in_flight;
  share.unheard.push_back(request.tokens() - matched_[worker]);
  if (request.use_cache) sent_.add(key_of(request), request.prompt, worker);
}

void Placement::ended(RequestId request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  Share& share = shares_[found->second];
  --share.in_flight;
  while (share.unheard.size() > share.in_flight) share.unheard.pop_front();
  requests_.erase(found);
}

void Placement::unpin(std::uint64_t pin) {
  const auto found = pins_.find(pin);
  if (found == pins_.end()) return;
  --shares_[found->second].pins;
  pins_.erase(found);
}

std::vector<RequestId> Placement::requests_of(std::size_t worker) const {
  std::vector<RequestId> out;
  for (const auto& [request, where] : requests_) {
    if (where == worker) out.push_back(request);
  }
  return out;
}

std::optional<std::size_t> Placement::worker_of(RequestId request) const {
  const auto found = requests_.find(request);
  return found != requests_.end() ? std::optional(found->second) : std::nullopt;
}

std::size_t Placement::sent_tokens() const {
  std::size_t tokens = 0;
  for (std::size_t worker = 0; worker < shares_.size(); ++worker) tokens += sent_.tokens(worker);
  return tokens;
}

bool Placement::consistent() const {
  std::vector<std::size_t> in_flight(shares_.size()), pins(shares_.size());
  for (const auto& [request, worker] : requests_) ++in_flight[worker];
  for (const auto& [pin, worker] : pins_) ++pins[worker];
  for (std::size_t worker = 0; worker < shares_.size(); ++worker) {
    const Share& share = shares_[worker];
    if (share.in_flight != in_flight[worker] || share.pins != pins[worker]) return false;
    if (share.unheard.size() > share.in_flight) return false;
  }
  return pins_.size() <= config_.pins_max && sent_.consistent();
}

}  // namespace chasqui
