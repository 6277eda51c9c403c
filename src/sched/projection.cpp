#include "sched/projection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/load.h"
#include "sched/slot_rules.h"
#include "sched/step_plan.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
// Of those that wait kTelling starts are rolled, and as many events as this work allows: members that each looks at.
constexpr std::size_t kWork = 8192;
constexpr std::size_t kEventsLeast = 24;
// Fewer starts say too little about how often slots come free.
constexpr std::int32_t kStartsTelling = 8;
// What has less left is done: it would take an event of its own.
constexpr double kNothing = 1e-9;

}  // namespace

void Projection::clear() {
  all_.clear();
  running_.clear();
  tenants_.clear();
  places_.clear();
  for (Lane& lane : lanes_) lane.heap.clear();
  probes_.clear();
  line_.clear();
  at_ = clock_ = 0;
  waiting_ = starts_ = 0;
  cells_free_ = kv_.cells;
}

std::uint32_t Projection::add(const Member& member) {
  const auto next = static_cast<std::uint32_t>(tenants_.size());
  const auto [found, fresh] = places_.emplace(member.standing.tenant, next);
  if (fresh) {
    tenants_.push_back({member.standing.service, member.weight, 0, member.standing.tenant});
    if (lanes_.size() < tenants_.size() * kServiceClasses) lanes_.resize(tenants_.size() * kServiceClasses);
  }
  ++tenants_[found->second].members;
  One& one = all_.emplace_back();
  static_cast<Member&>(one) = member;
  one.lane = static_cast<std::uint32_t>(found->second * kServiceClasses +
                                        static_cast<std::size_t>(member.standing.service_class));
  return static_cast<std::uint32_t>(all_.size() - 1);
}

void Projection::add_running(const Member& member) {
  const std::uint32_t place = add(member);
  all_[place].ends = member.steps;
  cells_free_ -= member.cells;
  running_.push_back(place);
}

void Projection::add_waiting(const Member& member) {
  const std::uint32_t place = add(member);
  all_[place].waited = true;
  lanes_[all_[place].lane].heap.push_back(place);
  ++waiting_;
}

// Of two that wait, with what their tenants have received by then.
bool Projection::before(std::uint32_t a, std::uint32_t b, const Urgency& urgency) {
  all_[a].standing.service = tenant_of(all_[a]).service;
  all_[b].standing.service = tenant_of(all_[b]).service;
  return urgency.slot_before(all_[a].standing, all_[b].standing);
}

// Null: none waits.
std::vector<std::uint32_t>* Projection::most_urgent(const Urgency& urgency) {
  std::vector<std::uint32_t>* best = nullptr;
  for (std::size_t i = 0; i < tenants_.size() * kServiceClasses; ++i) {
    std::vector<std::uint32_t>& heap = lanes_[i].heap;
    if (!heap.empty() && (best == nullptr || before(heap.front(), best->front(), urgency))) best = &heap;
  }
  return best;
}

std::uint32_t Projection::take(std::vector<std::uint32_t>& heap, const Urgency& urgency) {
  std::pop_heap(heap.begin(), heap.end(), [&](std::uint32_t a, std::uint32_t b) { return before(b, a, urgency); });
  const std::uint32_t place = heap.back();
  heap.pop_back();
  --waiting_;
  return place;
}

void Projection::wait(std::uint32_t place, const Urgency& urgency) {
  std::vector<std::uint32_t>& heap = lanes_[all_[place].lane].heap;
  heap.push_back(place);
  std::push_heap(heap.begin(), heap.end(), [&](std::uint32_t a, std::uint32_t b) { return before(b, a, urgency); });
  ++waiting_;
}

void Projection::roll(const Urgency& urgency, const StepTime& times, const LastSwap& last_swap, double place) {
  times_ = &times;
  last_swap_ = last_swap;
  pass_ = times.pass();
  for (std::size_t i = 0; i < tenants_.size() * kServiceClasses; ++i) {
    std::vector<std::uint32_t>& heap = lanes_[i].heap;
    std::make_heap(heap.begin(), heap.end(), [&](std::uint32_t a, std::uint32_t b) { return before(b, a, urgency); });
  }
  make_probes(urgency);
  const std::size_t looked_at = running_.size() + tenants_.size() * kServiceClasses + probes_.size();
  for (std::size_t events = std::max(kEventsLeast, kWork / looked_at); events > 0; --events) {
    const Urgency then = urgency.at(urgency.now() + from_seconds(at_));
    start(then);
    const Pace pace = this->pace(then);
    if (at_ == 0) reading_share_ = pace.reads > 0 ? pace.reads : 1;
    const bool open = std::any_of(probes_.begin(), probes_.end(), [](const Probe& probe) { return probe.open; });
    if ((!open && waiting_ == 0) || starts_ >= kTelling || !advance(pace, open)) break;
  }
  settle_rest(urgency.at(urgency.now() + from_seconds(at_)), place);
}

// One for each class, of a tenant that has nothing here. Where slots are short it matters whose request it is.
void Projection::make_probes(const Urgency& urgency) {
  of_tenants_.clear();
  double least = kForever;
  for (const Tenant& tenant : tenants_) least = std::min(least, tenant.service);
  const auto probe = [&](std::uint32_t id, double service, std::size_t tenant, bool of_newcomer) {
    for (std::size_t i = 0; i < kKinds; ++i) {
      Probe& made = probes_.emplace_back();
      const auto service_class = static_cast<ServiceClass>(i % kServiceClasses);
      const auto rows = static_cast<TokenCount>(i < kServiceClasses ? Load::kShort : Load::kLong);
      made.standing = urgency.of_newcomer(service_class, id, service, rows);
      made.tenant = tenant;
      made.of_newcomer = of_newcomer;
    }
  };
  // No tenant has the number of the newcomer: its requests wait for nothing that has to do with its own.
  probe(std::numeric_limits<std::uint32_t>::max(), tenants_.empty() ? 0 : least, 0, true);
  if (static_cast<std::int32_t>(running_.size()) + waiting_ < kv_.slots) return;
  std::array<std::size_t, Load::kTenants> busiest{};
  std::size_t known = 0;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    std::size_t at = std::min(known, Load::kTenants);
    while (at > 0 && tenants_[busiest[at - 1]].members < tenants_[i].members) --at;
    if (at == Load::kTenants) continue;
    known = std::min(known + 1, Load::kTenants);
    std::copy_backward(busiest.begin() + static_cast<std::ptrdiff_t>(at),
                       busiest.begin() + static_cast<std::ptrdiff_t>(known) - 1,
                       busiest.begin() + static_cast<std::ptrdiff_t>(known));
    busiest[at] = i;
  }
  for (std::size_t i = 0; i < known; ++i)
    probe(tenants_[busiest[i]].id, tenants_[busiest[i]].service, busiest[i], false);
}

// All that get a slot now. One that might come is asked about before each that it would be before.
void Projection::start(const Urgency& urgency) {
  for (;;) {
    answer(urgency);
    if (waiting_ == 0 || starts_ >= kTelling) return;
    std::vector<std::uint32_t>& heap = *most_urgent(urgency);
    const Standing next = all_[heap.front()].standing;
    const TokenCount cells = all_[heap.front()].cells;
    if (room_for(next, cells, urgency) == 0) return;
    const std::uint32_t place = take(heap, urgency);
    double swaps = 0;
    while (static_cast<std::int32_t>(running_.size()) >= kv_.slots ||
           (kv_.unified && cells_free_ < cells_to_start(cells, running_.size(), true))) {
      swaps += preempt(next, urgency);
    }
    if (swaps > 0) last_swap_ = {urgency.now(), swaps};
    One& one = all_[place];
    one.standing.slot_since = urgency.now();
    one.ends = clock_ + one.steps;  // where nothing is to be prefilled
    cells_free_ -= cells;
    running_.push_back(place);
    ++starts_;
    if (one.waited) line_.push_back({one.standing.id, one.standing.service_class, at_});
    one.waited = false;
    tenant_of(one).service += one.charge / tenant_of(one).weight;
    one.charge = 0;
  }
}

SliceTerms Projection::terms_for(const Standing& next) const {
  const auto of_tenant = [&](std::uint32_t place) { return all_[place].standing.tenant == next.tenant; };
  return {kv_.slots, last_swap_, std::ranges::none_of(running_, of_tenant)};
}

bool Projection::yields(One& running, const Standing& next, const SliceTerms& terms, const Urgency& urgency) {
  running.standing.service = tenant_of(running).service;
  return urgency.yields_to(running.standing, next, slice_of(running.standing, next, running.swap, terms));
}

// Slots that it, and others like it, would find: those that are free, and those that others would give up. 0: none, or
// not the cells.
std::int32_t Projection::room_for(const Standing& next, TokenCount cells, const Urgency& urgency) {
  auto room = kv_.slots - static_cast<std::int32_t>(running_.size());
  TokenCount could_free = cells_free_;
  std::size_t others = running_.size();
  if (room > 0 && !kv_.unified) return room;
  const SliceTerms terms = terms_for(next);
  for (const std::uint32_t place : running_) {
    if (!yields(all_[place], next, terms, urgency)) continue;
    ++room;
    --others;
    could_free += all_[place].cells;
  }
  return kv_.unified && could_free < cells_to_start(cells, others, true) ? 0 : room;
}

// Returns what counts for LastSwap. REQUIRES: one yields
double Projection::preempt(const Standing& next, const Urgency& urgency) {
  const SliceTerms terms = terms_for(next);
  std::size_t victim = running_.size();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (!yields(all_[running_[i]], next, terms, urgency)) continue;
    if (victim < running_.size() &&
        !urgency.yields_before(all_[running_[i]].standing, all_[running_[victim]].standing)) {
      continue;
    }
    victim = i;
  }
  CHECK(victim < running_.size(), "room was found, and nothing yields");
  const std::uint32_t place = running_[victim];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(victim));
  One& one = all_[place];
  if (one.reading == 0) one.steps = std::max(one.ends - clock_, 0.0);
  one.reading += one.swap;
  one.standing = urgency.without_slot(one.standing);
  cells_free_ += one.cells;
  wait(place, urgency);
  return one.standing.service_class <= next.service_class ? one.swap : 0;
}

Projection::Pace Projection::pace(const Urgency& urgency) const {
  Pace pace;
  pace.first_end = kForever;
  pace.target = Duration::max();
  TokenCount deepest = 0;
  double unread = 0;
  for (const std::uint32_t place : running_) {
    const One& one = all_[place];
    if (one.reading > 0) {
      unread += one.reading;
      if (pace.prompts++ == 0 || urgency.rows_before(one.standing, all_[pace.front].standing)) pace.front = place;
      continue;
    }
    ++pace.streams;
    deepest = std::max(deepest, one.cells);
    pace.first_end = std::min(pace.first_end, one.ends);
    const ServiceClass its_class = one.standing.service_class;
    const Duration target = targets_.of[static_cast<std::size_t>(its_class)].next_token;
    if (target < pace.target) std::tie(pace.target, pace.urgent) = std::tie(target, its_class);
  }
  if (pace.streams > 0) {
    const StepSize size{pace.streams, deepest + static_cast<TokenCount>(clock_)};
    const Duration step = times_->predict(Batch::Kind::decode, size);
    pace.step = std::max(to_seconds(step > Duration::zero() ? step : pass_), kNothing);
  }
  set_rates(pace, unread, pace.prompts);
  return pace;
}

// How time is divided between streams and prompts: what StepPlan does from step to step.
void Projection::set_rates(Pace& pace, double unread, std::int32_t prompts) const {
  pace.steps = pace.streams > 0 ? 1 / pace.step : 0;
  pace.reads = prompts > 0 ? 1 : 0;
  if (pace.streams == 0 || prompts == 0) return;
  const Duration step = from_seconds(pace.step);
  const Duration cheap = times_->cheap_chunk(all_[pace.front].cells);
  Duration chunk =
      StepPlan::token_time(pace.urgent, pace.target, {step, pass_, cheap, static_cast<std::size_t>(prompts)}) - step;
  if (targets_.prefill_step > Duration::zero()) chunk = std::min(chunk, targets_.prefill_step);
  chunk = std::max(chunk, StepPlan::least_chunk(pass_));
  const double reading = std::min(to_seconds(chunk), unread);
  pace.steps = 1 / (reading + pace.step);
  pace.reads = reading / (reading + pace.step);
}

// Those that would get a slot now.
void Projection::answer(const Urgency& urgency) {
  const std::vector<std::uint32_t>* const heap = most_urgent(urgency);
  for (Probe& probe : probes_) {
    if (!probe.open) continue;
    if (!probe.of_newcomer) probe.standing.service = tenants_[probe.tenant].service;
    // Which group of a tenant it would be of is not known: none is before or after it for that.
    if (heap != nullptr) probe.standing.group_service = all_[heap->front()].standing.group_service;
    if (heap != nullptr && !urgency.slot_before(probe.standing, all_[heap->front()].standing)) continue;
    const std::int32_t room = room_for(probe.standing, probe.standing.left, urgency);
    if (room == 0) continue;
    probe.open = false;
    probe.seconds = at_ + prefilled_before(probe, urgency);
    if (at_ == 0) probe.room = room;
  }
}

// The prompts that are prefilled before it, and the step that is computed when it comes.
double Projection::prefilled_before(const Probe& probe, const Urgency& urgency) const {
  Pace pace = this->pace(urgency);
  double unread = 0;
  for (const std::uint32_t place : running_) {
    const One& one = all_[place];
    if (one.reading > 0 && urgency.rows_before(one.standing, probe.standing)) unread += one.reading;
  }
  if (unread <= 0) return pace.step / 2;
  set_rates(pace, unread, pace.prompts + 1);
  return unread / pace.reads + pace.step / 2;
}

// To the next event. False: nothing runs.
bool Projection::advance(const Pace& pace, bool asked) {
  // While something waits, slices are looked at as often as forecasts are made, or after a little of the time so far.
  double step = asked || waiting_ > 0 ? std::max(to_seconds(kForecastEvery), at_ / kLittle) : kForever;
  if (pace.reads > 0) step = std::min(step, all_[pace.front].reading / pace.reads);
  if (pace.steps > 0) step = std::min(step, std::max(pace.first_end - clock_, 0.0) / pace.steps);
  if (step == kForever) return false;
  at_ += step;
  const double steps = step * pace.steps;
  clock_ += steps;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    One& one = all_[running_[i]];
    if (one.reading == 0) {
      tenant_of(one).service += TenantCounters::kTokenCost * steps / tenant_of(one).weight;
      if (one.ends - clock_ > kNothing) continue;
      cells_free_ += one.cells;
      running_[i--] = running_.back();
      running_.pop_back();
    } else if (running_[i] == pace.front) {
      one.reading -= step * pace.reads;
      if (one.reading > kNothing) continue;
      one.reading = 0;
      one.ends = clock_ + std::max(one.steps, 1.0);
    }
  }
  return true;
}

// What was not rolled: slots come free as they did.
void Projection::settle_rest(const Urgency& urgency, double place) {
  place_ = starts_ >= kStartsTelling && at_ > 0 ? at_ / starts_ : place;
  for (Probe& probe : probes_) {
    if (!probe.open) continue;
    std::size_t ahead = 1;
    for (std::size_t i = 0; i < tenants_.size() * kServiceClasses; ++i) {
      const std::vector<std::uint32_t>& heap = lanes_[i].heap;
      if (heap.empty()) continue;
      all_[heap.front()].standing.service = tenant_of(all_[heap.front()]).service;
      probe.standing.group_service = all_[heap.front()].standing.group_service;
      if (urgency.slot_before(all_[heap.front()].standing, probe.standing)) ahead += heap.size();
    }
    probe.seconds = at_ + place_ * static_cast<double>(ahead);
  }
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    const std::size_t kind = i % kKinds;
    if (probes_[i].of_newcomer) {
      wait_.seconds[kind] = probes_[i].seconds;
      if (kind < kServiceClasses) wait_.room[kind] = probes_[i].room;
      continue;
    }
    if (kind == 0) of_tenants_.push_back({tenants_[probes_[i].tenant].id, {}});
    of_tenants_.back().seconds[kind] = probes_[i].seconds;
  }
}

const std::vector<Projection::Place>& Projection::line(const Urgency& urgency) {
  // The front of each lane as it was when it came here. A tenant that is served goes back, in all its lanes: those are
  // put in order again when they come up, so that a start costs nothing for each of thousands of tenants.
  struct Front {
    Standing standing;
    std::size_t lane;
  };
  std::vector<Front> fronts;
  const auto after = [&](const Front& a, const Front& b) { return urgency.slot_before(b.standing, a.standing); };
  const auto enter = [&](std::size_t lane) {
    if (lanes_[lane].heap.empty()) return;
    One& front = all_[lanes_[lane].heap.front()];
    front.standing.service = tenant_of(front).service;
    fronts.push_back({front.standing, lane});
    std::ranges::push_heap(fronts, after);
  };
  for (std::size_t i = 0; i < tenants_.size() * kServiceClasses; ++i) enter(i);
  for (double at = at_ + place_; !fronts.empty();) {
    std::ranges::pop_heap(fronts, after);
    const auto [standing, lane] = fronts.back();
    fronts.pop_back();
    if (standing.service == tenants_[lane / kServiceClasses].service) {
      One& one = all_[take(lanes_[lane].heap, urgency)];
      if (one.waited) line_.push_back({one.standing.id, one.standing.service_class, at});
      tenant_of(one).service += one.charge / tenant_of(one).weight;
      at += place_;
    }
    enter(lane);
  }
  return line_;
}

}  // namespace chasqui
