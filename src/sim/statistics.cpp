#include "sim/statistics.h"

#include <algorithm>
#include <charconv>

#include "sim/random.h"

namespace chasqui {

Result<Objective> Objective::parse(std::string_view text, const std::string& field) {
  Objective objective;
  const std::pair<std::string_view, std::optional<Duration>*> limits[] = {
      {"ttft", &objective.ttft}, {"itl", &objective.itl}, {"tpot", &objective.tpot}, {"e2e", &objective.e2e}};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::string_view word = part.substr(0, part.find(':'));
    const std::string_view value = part.substr(std::min(word.size() + 1, part.size()));
    const auto limit =
        std::find_if(std::begin(limits), std::end(limits), [&](const auto& l) { return l.first == word; });
    double ms = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ms);
    if (limit == std::end(limits) || error != std::errc{} || end != value.data() + value.size() || !(ms >= 0)) {
      return invalid_field(field, field + " must be ttft, itl, tpot or e2e with milliseconds, as in ttft:1000,itl:200");
    }
    *limit->second = std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
  }
  return objective;
}

std::string_view name(Outcome outcome) {
  constexpr std::string_view names[kOutcomes] = {"ok", "refused", "cancelled", "deadline", "failed"};
  return names[static_cast<std::size_t>(outcome)];
}

Statistics::Statistics(const Workload& workload, const Objective& objective)
    : contention(workload.tenants().size()),
      token_windows(workload.tenants().size()),
      objective_(objective),
      seen_prefix_(workload.prefixes().size()) {
  groups_.resize(1 + kServiceClasses + workload.tenants().size());
  groups_[0].name = "all";
  for (std::size_t i = 0; i < kServiceClasses; ++i) groups_[1 + i].name = chasqui::name(static_cast<ServiceClass>(i));
  for (std::size_t i = 0; i < workload.tenants().size(); ++i) {
    groups_[1 + kServiceClasses + i].name = "tenant " + workload.tenants()[i];
  }
}

template <class Change>
void Statistics::each_group(const SimRequest& life, Change change) {
  change(groups_[0]);
  change(groups_[1 + static_cast<std::size_t>(life.plan.service_class)]);
  change(groups_[1 + kServiceClasses + life.plan.tenant]);
}

void Statistics::arrived(const SimRequest& life) {
  each_group(life, [](Group& group) { ++group.requests; });
  TokenCount& seen = seen_prefix_[life.plan.prefix];
  shared_tokens_ += static_cast<std::uint64_t>(std::min(seen, life.plan.prefix_tokens) + life.plan.history);
  seen = std::max(seen, life.plan.prefix_tokens);
}

void Statistics::refused(const SimRequest& life) {
  each_group(life, [](Group& group) { ++group.refusals; });
}

void Statistics::told(SimRequest& life, const Event& event, TimePoint now) {
  if (life.said == event.tokens) {
    life.first_token = now;
    const Duration ttft = now - life.first_try;
    each_group(life, [&](Group& group) {
      group.ttft.add(ttft);
      group.kept.add(now - life.let_in);
      group.prompt_tokens += static_cast<std::uint64_t>(life.plan.prompt);
    });
  } else {
    const Duration gap = now - life.last_token;
    life.longest_gap = std::max(life.longest_gap, gap);
    each_group(life, [gap](Group& group) { group.itl.add(gap); });
  }
  life.last_token = now;
  token_windows.add(life.plan.tenant, now, event.tokens);
}

void Statistics::ended(const SimRequest& life, Outcome outcome, TimePoint now) {
  const Duration e2e = now - life.first_try;
  const Duration ttft = life.first_token - life.first_try;
  const Duration tpot = life.said > 1 ? (life.last_token - life.first_token) / (life.said - 1) : Duration::zero();
  const bool is_good = outcome == Outcome::ok && good(life, ttft, tpot, e2e);
  if (life.plan.history > 0 && outcome == Outcome::ok) returned(life, ttft);
  each_group(life, [&](Group& group) {
    ++group.outcomes[static_cast<std::size_t>(outcome)];
    group.tokens += static_cast<std::uint64_t>(life.said);
    group.preemptions += static_cast<std::uint64_t>(life.preempted);
    if (outcome == Outcome::ok) group.e2e.add(e2e);
    if (outcome == Outcome::ok && life.said > 1) group.tpot.add(tpot);
    if (is_good) {
      ++group.good;
      group.good_tokens += static_cast<std::uint64_t>(life.said);
    }
  });
}

void Statistics::returned(const SimRequest& life, Duration ttft) {
  const TokenCount found = std::min(life.cached, life.plan.history);
  ++returning_.turns;
  returning_.found += found + life.plan.history / 50 >= life.plan.history ? 1 : 0;
  returning_.said_tokens += static_cast<std::uint64_t>(life.plan.history);
  returning_.found_tokens += static_cast<std::uint64_t>(found);
  returning_.ttft.add(ttft);
}

bool Statistics::good(const SimRequest& life, Duration ttft, Duration tpot, Duration e2e) const {
  const auto within = [](Duration value, const std::optional<Duration>& limit) { return !limit || value <= *limit; };
  return within(life.said > 0 ? ttft : e2e, objective_.ttft) && within(life.longest_gap, objective_.itl) &&
         within(tpot, objective_.tpot) && within(e2e, objective_.e2e);
}

void Statistics::step(const Batch& batch, DecodeStatus status, Duration took, std::int32_t passes) {
  const bool decode = batch.kind == Batch::Kind::decode;
  ++(decode ? steps_.decode : steps_.prefill);
  (decode ? steps_.decode_rows : steps_.prefill_rows) += batch.rows.size();
  steps_.passes += static_cast<std::uint64_t>(passes);
  steps_.busy += took;
  if (status == DecodeStatus::aborted) ++steps_.aborted;
  if (status == DecodeStatus::failed || status == DecodeStatus::no_room) ++steps_.failed;
}

void Statistics::hash(const Event& event, std::uint64_t serial, TimePoint now) {
  const auto add = [this](std::uint64_t value) { hash_ = hash_bits(hash_ ^ value); };
  add(serial);
  add(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  add((static_cast<std::uint64_t>(event.kind) << 40) ^ (static_cast<std::uint64_t>(event.reason) << 32) ^
      static_cast<std::uint64_t>(event.tokens));
  for (const char c : event.text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  if (event.kind == Event::Kind::queued) {
    add(static_cast<std::uint64_t>(event.position));
    add(static_cast<std::uint64_t>(event.wait.count()));
  }
  if (event.kind == Event::Kind::finished) cached_tokens_ += static_cast<std::uint64_t>(event.usage.cached);
}

}  // namespace chasqui
