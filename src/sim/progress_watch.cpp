#include "sim/progress_watch.h"

#include <algorithm>

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
    : config_(config), faults_(faults), waiting_(tenants * kServiceClasses), passed_over_(waiting_.size()) {}

void ProgressWatch::waits(SimRequest& life) {
  Fifo& line = waiting_[line_of(life)];
  if (line.first == nullptr) ++competitors_[static_cast<std::size_t>(life.plan.service_class)];
  line.push(life);
}

void ProgressWatch::leave(SimRequest& life) {
  Fifo* line = life.fifo;
  Fifo::leave(life);
  if (line == nullptr || line == &decoding_ || line->first != nullptr) return;
  --competitors_[static_cast<std::size_t>(life.plan.service_class)];
}

void ProgressWatch::starts(const SimRequest& life) {
  passes_others(life);
  for (SimRequest* older = life.before; older != nullptr; older = older->before) {
    if (older->has_started || older->request->arrival == life.request->arrival) continue;
    most_passed_ = std::max(most_passed_, ++older->passed);
    faults_.expect(older->passed <= config_.passed, "progress: a waiting request is passed by too many younger ones",
                   older->serial);
  }
}

// Lines whose turn has come as well go before, each with one.
void ProgressWatch::passes_others(const SimRequest& life) {
  const std::size_t own = line_of(life);
  std::int32_t lines = 0;
  for (const Fifo& line : waiting_) lines += line.first != nullptr ? 1 : 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const SimRequest* oldest = waiting_[i].first;
    while (oldest != nullptr && oldest->has_started) oldest = oldest->after;
    if (i == own || oldest == nullptr) {
      passed_over_[i] = 0;
    } else if (oldest->request->arrival < life.request->arrival) {
      faults_.expect(++passed_over_[i] <= config_.passed + lines,
                     "progress: a tenant and class is passed over by too many younger others", oldest->serial);
    }
  }
}

// How long it was away says nothing about how long it now goes without a row.
void ProgressWatch::goes_on(SimRequest& life, std::uint64_t step, TimePoint now) {
  passed_over_[line_of(life)] = 0;
  if (life.generated == 0) return;
  leave(life);
  life.last_row_step = step;
  life.last_row_at = now;
  decoding_.push(life);
}

void ProgressWatch::got_row(SimRequest& life, TimePoint now) {
  leave(life);
  life.last_row_at = now;
  if (life.decoding) decoding_.push(life);
}

// Its rows can lead to no token any more: its client has left, or its batch failed.
void ProgressWatch::ended(SimRequest& life) {
  leave(life);
  silent_rows_ -= std::min(silent_rows_, life.rows);
}

// Prompts that take the slot from each other, each from its beginning again, get rows and never an answer.
void ProgressWatch::computed(std::size_t rows, bool token) {
  silent_rows_ = token ? 0 : silent_rows_ + rows;
  faults_.expect(config_.silent_rows == 0 || silent_rows_ <= config_.silent_rows,
                 "progress: prompts are read for ever and no token comes");
}

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
