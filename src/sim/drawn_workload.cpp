#include "sim/drawn_workload.h"

#include <algorithm>
#include <chrono>

namespace chasqui {
namespace {

// The index of one share, as often as it is large.
template <class Shares, class ShareOf>
std::size_t draw_share(Random& random, const Shares& shares, ShareOf share_of) {
  double sum = 0;
  for (const auto& each : shares) sum += share_of(each);
  double place = random.unit() * sum;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if ((place -= share_of(shares[i])) < 0) return i;
  }
  return shares.size() - 1;
}

}  // namespace

DrawnWorkload::DrawnWorkload(const WorkloadConfig& config) : config_(config), random_(config.seed) {
  for (std::size_t i = 1; i <= config_.tenants.size(); ++i) tenants_.push_back("t" + std::to_string(i));
  prefix_lengths_.push_back(0);
  for (std::int32_t i = 1; i <= config_.prefixes; ++i) {
    prefixes_.push_back("p" + std::to_string(i));
    prefix_lengths_.push_back(static_cast<TokenCount>(config_.prefix_tokens.draw(random_)));
  }
}

bool DrawnWorkload::next(PlannedRequest& request) {
  if (drawn_ == config_.requests) return false;
  ++drawn_;
  request = PlannedRequest{};
  seconds_ += random_.exponential(1 / config_.rate);
  request.at = microseconds(static_cast<std::int64_t>(seconds_ * 1e6));
  request.prompt = static_cast<TokenCount>(std::max<std::int64_t>(1, config_.prompt.draw(random_)));
  request.output = static_cast<TokenCount>(config_.output.draw(random_));
  if (config_.max_tokens > 0) {
    request.max_tokens = static_cast<TokenCount>(config_.max_tokens);
    request.output = std::min(request.output, request.max_tokens);
  }
  request.service_class =
      static_cast<ServiceClass>(draw_share(random_, config_.classes, [](double share) { return share; }));
  const std::size_t tenant = draw_share(random_, config_.tenants, [](const TenantShare& t) { return t.share; });
  request.tenant = static_cast<std::uint32_t>(tenant);
  request.weight = config_.tenants[tenant].weight;
  if (config_.prefixes > 0 && random_.chance(config_.prefix_share)) {
    request.prefix = static_cast<std::uint32_t>(random_.between(1, config_.prefixes));
    request.prefix_tokens = prefix_lengths_[request.prefix];
    request.prompt += request.prefix_tokens;
  }
  if (random_.chance(config_.leaving_share)) draw_leaving(request);
  if (random_.chance(config_.timeout_share)) {
    request.timeout_ms = std::max<std::int64_t>(1, config_.timeout_ms.draw(random_));
  }
  if (random_.chance(config_.slow_share)) request.reads_per_s = config_.slow_reads_per_s;
  request.repeats = config_.repeats;
  if (config_.adapters > 0 && random_.chance(config_.adapter_share)) {
    request.adapter = static_cast<std::int32_t>(random_.between(1, config_.adapters));
  }
  request.calls = config_.call_share > 0 && random_.chance(config_.call_share);
  request.back = config_.branch_share > 0 && random_.chance(config_.branch_share) ? 1 : 0;
  return true;
}

// The first clients are the first tenant's, as many as its share.
void DrawnWorkload::give_to(PlannedRequest& request, std::uint32_t client, std::uint32_t clients) const {
  double sum = 0;
  for (const TenantShare& tenant : config_.tenants) sum += tenant.share;
  double place = (client + 0.5) / clients * sum;
  std::uint32_t owner = 0;
  while (owner + 1 < config_.tenants.size() && (place -= config_.tenants[owner].share) >= 0) ++owner;
  request.tenant = owner;
  request.weight = config_.tenants[owner].weight;
}

// In any phase: after a time that may end in the queue, in the middle of the prompt, in the middle of the answer.
void DrawnWorkload::draw_leaving(PlannedRequest& request) {
  request.leaving = static_cast<Leaving>(random_.between(1, 3));
  switch (request.leaving) {
    case Leaving::never: break;
    case Leaving::after_ms: request.leaves_after = random_.between(0, config_.leaving_ms.draw(random_)); break;
    case Leaving::after_rows: request.leaves_after = random_.between(1, request.prompt); break;
    case Leaving::after_tokens:
      request.leaves_after = random_.between(1, std::max<std::int64_t>(1, request.output));
      break;
  }
}

}  // namespace chasqui
