// Rolls the scheduler's decisions forward from where it stands, in coarse virtual time: when would a short request that
// comes now get its first token, and when does each that waits get its slot? The rules are those of the scheduler:
// Urgency for order and preemption, slot_rules.h for slices and cells, StepPlan for what streams leave to prompts,
// StepTime for what steps take. What it leaves out: requests that come later, prefixes that others compute just now,
// adapters, and holes between slots.
//
// Between two events (a prompt is prefilled, an answer ends, some time has gone by) all streams get tokens at one pace,
// and one prompt is prefilled after the other. Bounded: so many events and starts; the rest of the line is
// extrapolated. Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cache/kv_ledger.h"
#include "sched/slot_rules.h"
#include "sched/standing.h"
#include "sched/step_time.h"
#include "sched/targets.h"
#include "sched/urgency.h"

namespace chasqui {

class Projection {
 public:
  // Requests that might come: of each class one with a short prompt (Load::kShort), then of each one with a long one.
  // What is between waits between them, since the score of a sequence grows with its rows.
  static constexpr std::size_t kKinds = 2 * kServiceClasses;
  using Seconds = std::array<double, kKinds>;

  struct Member {
    Standing standing;
    double weight = 1;      // of its tenant
    double reading = 0;     // seconds for the rows before its next token, with nothing beside them; 0: it decodes
    double steps = 0;       // … of decoding, to the end of its answer
    double swap = 0;        // seconds for a copy out of its slot and back
    TokenCount cells = 0;   // of its tokens so far
    TokenCount charge = 0;  // tokens that its tenant owes for the prompt when it starts
  };
  // One that comes now.
  struct Wait {
    Seconds seconds{};
    std::array<std::int32_t, kServiceClasses> room{};  // so many of the class would get slots now
  };
  struct OfTenant {
    std::uint32_t tenant = 0;
    Seconds seconds{};
  };
  struct Place {
    RequestId id;
    ServiceClass service_class = ServiceClass::standard;
    double seconds = 0;  // until it gets a slot
  };

  Projection(const SchedulerTargets& targets, const KvLedger::Layout& kv) : targets_(targets), kv_(kv) {}

  void clear();
  void add_running(const Member& member);
  void add_waiting(const Member& member);
  // `place`: seconds from one slot that comes free to the next, as it was of late.
  void roll(const Urgency& urgency, const StepTime& times, const LastSwap& last_swap, double place);

  // … of a tenant that has nothing here; and of the busiest, where slots are short.
  const Wait& wait() const { return wait_; }
  const std::vector<OfTenant>& of_tenants() const { return of_tenants_; }
  // Of those that wait, in the order in which they start. Takes them out of the line: once, after roll().
  const std::vector<Place>& line(const Urgency& urgency);
  // What share of the time prompts have now.
  double reading_share() const { return reading_share_; }

 private:
  struct Tenant {
    double service = 0;
    double weight = 1;
    std::int32_t members = 0;
    std::uint32_t id = 0;
  };
  struct Lane {  // of one tenant and class: a heap, the most urgent on top
    std::vector<std::uint32_t> heap;
  };
  struct One : Member {
    std::uint32_t lane = 0;
    double ends = 0;      // by the clock of decode steps; while it decodes
    bool waited = false;  // and is to be told when it starts
  };
  struct Probe {
    Standing standing;
    std::size_t tenant = 0;  // place in tenants_
    bool of_newcomer = true;
    bool open = true;
    double seconds = 0;
    std::int32_t room = 0;
  };
  // What runs, at one moment.
  struct Pace {
    std::int32_t streams = 0;
    std::int32_t prompts = 0;
    double step = 0;       // of decoding, in seconds
    double first_end = 0;  // by the clock of decode steps
    std::uint32_t front = 0;
    Duration target{};  // for the next token, of the most urgent stream
    ServiceClass urgent{};
    double steps = 0;  // decode steps in a second
    double reads = 0;  // seconds of reading in a second
  };

  std::uint32_t add(const Member& member);
  Tenant& tenant_of(const One& one) { return tenants_[one.lane / kServiceClasses]; }
  bool before(std::uint32_t a, std::uint32_t b, const Urgency& urgency);
  std::vector<std::uint32_t>* most_urgent(const Urgency& urgency);
  std::uint32_t take(std::vector<std::uint32_t>& heap, const Urgency& urgency);
  void wait(std::uint32_t place, const Urgency& urgency);
  void make_probes(const Urgency& urgency);
  void start(const Urgency& urgency);
  SliceTerms terms_for(const Standing& next) const;
  bool yields(One& running, const Standing& next, const SliceTerms& terms, const Urgency& urgency);
  std::int32_t room_for(const Standing& next, TokenCount cells, const Urgency& urgency);
  double preempt(const Standing& next, const Urgency& urgency);
  Pace pace(const Urgency& urgency) const;
  void set_rates(Pace& pace, double unread, std::int32_t prompts) const;
  void answer(const Urgency& urgency);
  double prefilled_before(const Probe& probe, const Urgency& urgency) const;
  // `asked`: some that might come have no answer yet.
  bool advance(const Pace& pace, bool asked);
  void settle_rest(const Urgency& urgency, double place);

  const SchedulerTargets targets_;
  const KvLedger::Layout kv_;
  const StepTime* times_ = nullptr;
  LastSwap last_swap_;

  std::vector<One> all_;
  std::vector<std::uint32_t> running_;
  std::vector<Tenant> tenants_;
  std::unordered_map<std::uint32_t, std::uint32_t> places_;  // in tenants_, by id
  std::vector<Lane> lanes_;                                  // kServiceClasses of each tenant
  std::vector<Probe> probes_;
  std::vector<Place> line_;
  Wait wait_;
  std::vector<OfTenant> of_tenants_;
  Duration pass_{};
  double at_ = 0;     // seconds from now
  double clock_ = 0;  // decode steps from now
  double place_ = 0;
  double reading_share_ = 1;
  std::int32_t waiting_ = 0;
  std::int32_t starts_ = 0;
  TokenCount cells_free_ = 0;
};

}  // namespace chasqui
