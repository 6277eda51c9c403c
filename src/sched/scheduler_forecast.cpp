// The part of the Scheduler that says how long requests will wait: for admission, for those that are told to come
// again, and for those that wait. What it says is what Projection finds by the scheduler's own rules.
#include <algorithm>

#include "sched/moving_average.h"
#include "sched/scheduler.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

constexpr std::size_t kMembersOfRenewal = 512;

}  // namespace

// So many rows from `position` on, with nothing beside them.
double Scheduler::reading_seconds(TokenCount rows, TokenCount position) const {
  if (rows <= 0) return 0;
  // What a row costs is that of chunks of usual length.
  constexpr TokenCount kChunk = kMicroBatch / 2;
  const StepSize size{kChunk, position + rows / 2};
  return to_seconds(step_time_.predict(Batch::Kind::prefill, size)) * rows / kChunk;
}

Projection::Member Scheduler::projected(const Sequence& sequence, const Urgency& urgency, double swap) const {
  const Request& request = sequence.request();
  Projection::Member member;
  member.standing = urgency.of(sequence);
  member.weight = request.tenant.weight;
  member.steps = recent_answers_.left(sequence.generated(), request.max_tokens - sequence.generated(),
                                      !request.limited_by_context) /
                 tokens_a_row_;
  member.cells = sequence.length();
  member.swap = swap * sequence.length();
  if (sequence.prefilling()) {
    member.reading = reading_seconds(sequence.left(), sequence.computed());
  } else if (!sequence.decoding() && sequence.preemptions() == 0) {
    const auto rows = static_cast<TokenCount>(fresh_share_ * sequence.left());
    member.reading = reading_seconds(rows, sequence.left() - rows);
    member.charge = rows;
  }
  return member;
}

void Scheduler::project(const Urgency& urgency) {
  projection_.clear();
  // What copies of those that run cost says what those of the others will.
  double swaps = 0;
  std::int64_t computed = 0;
  for (const auto& sequence : running_) {
    swaps += reuse_.swap_seconds(*sequence, step_time_.read_row_seconds());
    computed += sequence->computed();
  }
  const double swap = computed > 0 ? swaps / static_cast<double>(computed) : step_time_.read_row_seconds();
  for (const auto& sequence : running_) projection_.add_running(projected(*sequence, urgency, swap));
  for (const auto& sequence : waiting_.all()) projection_.add_waiting(projected(*sequence, urgency, swap));
  projection_.roll(urgency, step_time_, last_swap_, recent_answers_.slot_seconds() / ledger_.slots_total());
  projected_ = now_;
  newer_tokens_ = 0;
  forecast_ = {};
  forecast_.row_time = from_seconds(step_time_.measured_row_seconds() / projection_.reading_share());
  const auto fill = [](Load::Wait& wait, const Projection::Seconds& told) {
    const auto middle = told.begin() + kServiceClasses;
    std::transform(told.begin(), middle, wait.of_short.begin(), from_seconds);
    std::transform(middle, told.end(), wait.of_long.begin(), from_seconds);
  };
  fill(forecast_.wait, projection_.wait().seconds);
  forecast_.room = projection_.wait().room;
  for (const Projection::OfTenant& tenant : projection_.of_tenants()) {
    Load::OfTenant& listed = forecast_.of_tenants[static_cast<std::size_t>(forecast_.tenants++)];
    listed.tenant = tenant.tenant;
    fill(listed.wait, tenant.seconds);
  }
}

Load Scheduler::load() {
  if (config_.tap != nullptr) config_.tap->load_asked();
  const auto members = static_cast<std::int64_t>((running_.size() + waiting_.size()) / kMembersOfRenewal);
  if (idle()) {
    newer_tokens_ = 0;
    forecast_ = {};
    forecast_.room.fill(ledger_.slots_total());
    forecast_.row_time = from_seconds(step_time_.measured_row_seconds());
    projected_ = kNever;
  } else if (projected_ == kNever || now_ - projected_ >= kForecastEvery * (1 + members)) {
    project(urgency(now_));
  }
  Load load = forecast_;
  load.slots = ledger_.slots_total();
  load.slot_time = from_seconds(recent_answers_.slot_seconds());
  load.running = static_cast<std::int32_t>(running_.size());
  Duration started{};  // of all together, from the first one on
  for (const auto& sequence : running_) started += sequence->started_at() - running_.front()->started_at();
  if (load.running > 0) load.running_since = running_.front()->started_at() + started / load.running;
  load.waiting_tokens = waiting_.tokens();
  load.tokens_to_prefill = tokens_to_prefill();
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    load.waiting[c] = waiting_.of_class(static_cast<ServiceClass>(c));
  }
  return load;
}

// For one that comes now: those that came since the forecast was made are before it.
Duration Scheduler::wait_of(const Request& request) const {
  const std::int64_t tokens = request.tokens();
  return forecast_.wait_of(request.tenant.id, request.service_class, tokens, forecast_.newer, newer_tokens_);
}

void Scheduler::note_first_token(const Sequence& sequence, Event& event, TimePoint now) {
  const auto prompt = static_cast<double>(sequence.request().prompt.size());
  fresh_share_ += kSlowWeight * (1 - sequence.cached() / prompt - fresh_share_);
  const Duration own = (sequence.length() - sequence.found()) * forecast_.row_time;
  event.first = true;
  event.late = now - sequence.request().arrival - sequence.expected() - own;
}

void Scheduler::note_decoding(const BatchResult& result, std::size_t streams) {
  if (streams == 0) return;
  const double tokens = static_cast<double>(result.samples.size()) / static_cast<double>(streams);
  tokens_a_row_ += kSlowWeight * (std::max(tokens, 1.0) - tokens_a_row_);
}

}  // namespace chasqui
