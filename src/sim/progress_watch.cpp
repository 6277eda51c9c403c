#include "sim/progress_watch.h"

namespace chasqui {

void Fifo::push(SimRequest& life) {
  life.fifo = this;
  life.before = last;
  life.after = nullptr;
  (last != nullptr ? last->after : first) = &life;
  last = &life;
}

void Fifo::leave(SimRequest& life) {
  if (life.fifo == nullptr) return;
  (life.before != nullptr ? life.before->after : life.fifo->first) = life.after;
  (life.after != nullptr ? life.after->before : life.fifo->last) = life.before;
  life.fifo = nullptr;
}

ProgressWatch::ProgressWatch(const PatienceConfig& config, std::size_t tenants, Faults& faults)
    : config_(config), faults_(faults), waiting_(tenants * kServiceClasses) {}

Fifo& ProgressWatch::fifo(const SimRequest& life) {
  return waiting_[life.plan.tenant * kServiceClasses + static_cast<std::size_t>(life.plan.service_class)];
}

void ProgressWatch::waits(SimRequest& life) {
  Fifo& line = fifo(life);
  if (line.first == nullptr) ++competitors_[static_cast<std::size_t>(life.plan.service_class)];
  line.push(life);
}

void ProgressWatch::leave(SimRequest& life) {
  Fifo* line = life.fifo;
  Fifo::leave(life);
  if (line == nullptr || line == &decoding_ || line->first != nullptr) return;
  --competitors_[static_cast<std::size_t>(life.plan.service_class)];
}

void ProgressWatch::starts(SimRequest& life) {
  for (SimRequest* older = life.before; older != nullptr; older = older->before) {
    if (older->has_started || older->request->arrival == life.request->arrival) continue;
    faults_.expect(++older->passed <= config_.passed, "progress: a waiting request is passed by too many younger ones",
                   older->serial);
  }
}

void ProgressWatch::got_row(SimRequest& life, TimePoint now) {
  leave(life);
  life.last_row_at = now;
  if (life.decoding) decoding_.push(life);
}

void ProgressWatch::ended(SimRequest& life) { leave(life); }

void ProgressWatch::step_done(std::uint64_t step, TimePoint now) {
  while (SimRequest* oldest = decoding_.first) {
    if (oldest->last_row_step + config_.decode_steps >= step) return;
    if (oldest->decoding && oldest->last_row_at + config_.decode_wait >= now) return;
    if (oldest->decoding) {
      faults_.expect(false, "progress: a decoding sequence gets no rows", oldest->serial);
      return;
    }
    Fifo::leave(*oldest);  // preempted: it sits out
  }
}

void ProgressWatch::stands_still(TimePoint now) {
  if (!standing_) standing_since_ = now;
  standing_ = true;
  faults_.expect(now - standing_since_ <= config_.standstill, "progress: there is work and nothing is computed");
}

}  // namespace chasqui
