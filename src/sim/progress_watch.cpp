#include "sim/progress_watch.h"

namespace chasqui {

void Lane::push(Life& life) {
  life.lane = this;
  life.before = last;
  life.after = nullptr;
  (last != nullptr ? last->after : first) = &life;
  last = &life;
}

void Lane::leave(Life& life) {
  if (life.lane == nullptr) return;
  (life.before != nullptr ? life.before->after : life.lane->first) = life.after;
  (life.after != nullptr ? life.after->before : life.lane->last) = life.before;
  life.lane = nullptr;
}

ProgressWatch::ProgressWatch(const PatienceConfig& config, std::size_t tenants, Faults& faults)
    : config_(config), faults_(faults), waiting_(tenants * kServiceClasses) {}

Lane& ProgressWatch::lane(const Life& life) {
  return waiting_[life.plan.tenant * kServiceClasses + static_cast<std::size_t>(life.plan.service_class)];
}

void ProgressWatch::waits(Life& life) {
  Lane& line = lane(life);
  if (line.first == nullptr) ++competitors_[static_cast<std::size_t>(life.plan.service_class)];
  line.push(life);
}

void ProgressWatch::leave(Life& life) {
  Lane* line = life.lane;
  Lane::leave(life);
  if (line == nullptr || line == &decoding_ || line->first != nullptr) return;
  --competitors_[static_cast<std::size_t>(life.plan.service_class)];
}

void ProgressWatch::starts(Life& life) {
  for (Life* older = life.before; older != nullptr; older = older->before) {
    if (older->has_started || older->request->arrival == life.request->arrival) continue;
    faults_.expect(++older->passed <= config_.passed, "progress: a waiting request is passed by too many younger ones",
                   older->serial);
  }
}

void ProgressWatch::got_row(Life& life, TimePoint now) {
  leave(life);
  life.last_row_at = now;
  if (life.decoding) decoding_.push(life);
}

void ProgressWatch::ended(Life& life) { leave(life); }

void ProgressWatch::step_done(std::uint64_t step, TimePoint now) {
  while (Life* oldest = decoding_.first) {
    if (oldest->last_row_step + config_.decode_steps >= step) return;
    if (oldest->decoding && oldest->last_row_at + config_.decode_wait >= now) return;
    if (oldest->decoding) {
      faults_.expect(false, "progress: a decoding sequence gets no rows", oldest->serial);
      return;
    }
    Lane::leave(*oldest);  // preempted: it sits out
  }
}

void ProgressWatch::stands_still(TimePoint now) {
  if (!standing_) standing_since_ = now;
  standing_ = true;
  faults_.expect(now - standing_since_ <= config_.standstill, "progress: there is work and nothing is computed");
}

}  // namespace chasqui
