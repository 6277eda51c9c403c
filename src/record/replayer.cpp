#include "record/replayer.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "record/recorded_occupancy.h"
#include "record/recorded_request.h"
#include "sched/moved_text.h"

namespace chasqui {
namespace {

std::int64_t sum(const std::array<std::int32_t, kServiceClasses>& of) {
  return std::accumulate(of.begin(), of.end(), std::int64_t{0});
}

}  // namespace

Result<RecordedHead> head_of(const RecordStream& stream) {
  const auto wrong = [](const std::string& why) { return Error{ErrorCode::invalid_request, why, ""}; };
  if (stream.records.empty() || stream.records.front().kind != TapKind::head) {
    return wrong("the recording does not begin with a head");
  }
  RecordedHead head;
  ByteReader io(stream.records.front().parts);
  pass_head(io, head);
  if (io.failed() || !io.at_end()) return wrong("the head of the recording is not whole");
  if (const auto why = unusable(head)) return wrong("no scheduler can be made as the recording says: " + *why);
  head.config.policy = slot_policies().at(head.policy);
  return head;
}

ReplayReport replay(const RecordStream& stream, const ReplayOptions& options) {
  return Replayer(stream, options).run();
}

ReplayReport Replayer::run() {
  if (!begin()) return std::move(report_);
  for (at_ = 1; at_ < stream_.records.size() && !stopped(); ++at_) {
    const Record& record = stream_.records[at_];
    if (options_.before) options_.before(at_, report_.plans);
    ByteReader io(record.parts);
    follow(record, io);
    ++report_.records;
    if (!stopped() && (io.failed() || !io.at_end())) fails("a record is not whole");
  }
  return std::move(report_);
}

bool Replayer::begin() {
  auto head = head_of(stream_);
  if (!head) {
    fails(head.error().message);
    return false;
  }
  ++report_.records;
  report_.head = std::move(*head);
  SchedulerConfig config = report_.head.config;
  if (options_.change) options_.change(config);
  config.tap = this;
  scheduler_ = std::make_unique<Scheduler>(config);
  return true;
}

void Replayer::follow(const Record& record, ByteReader& io) {
  TimePoint now{};
  switch (record.kind) {
    case TapKind::head: return fails("it has two heads");
    case TapKind::added: return add(io);
    case TapKind::cancelled: {
      RequestId id;
      FinishReason reason{};
      io(id, now);
      io.choice(reason, static_cast<std::size_t>(FinishReason::error) + 1);
      return scheduler_->cancel(id, now, reason);
    }
    case TapKind::all_cancelled: return io(now), scheduler_->cancel_all(now);
    case TapKind::all_failed:
      return io(now), scheduler_->fail_all({ErrorCode::model_failure, "as recorded", ""}, now);
    case TapKind::tenant_forgotten: {
      Tenant tenant;
      std::uint64_t ticket = 0;
      io(tenant.id, tenant.lasting, ticket);
      scheduler_->forget_tenant(tenant, ticket);
      return;
    }
    case TapKind::encoded: {
      EncodingOutcome outcome;
      bool failed = false;
      io(outcome.request, outcome.begin, outcome.fresh, failed, now);
      if (failed) outcome.error = Error{ErrorCode::model_failure, "as recorded", ""};
      return scheduler_->encoded(outcome, now);
    }
    case TapKind::load_asked: return void(scheduler_->load());
    case TapKind::planned: return plan(io);
    case TapKind::computed: return commit(io);
    case TapKind::committed: return compare_occupancy(io);
    case TapKind::finished: {
      RequestId id;
      FinishReason reason{};
      io(id);
      io.choice(reason, static_cast<std::size_t>(FinishReason::error) + 1);
      known_.erase(id);
      ++report_.finished;
      return void(ended_there_.emplace_back(id, reason));
    }
    case TapKind::ended: return io(report_.end);
    case TapKind::slots_copied_out:
    case TapKind::slots_emptied:
    case TapKind::slot_copy_wanted:
    case TapKind::slot_copied:
    case TapKind::slot_adopted: return follow_slots(record.kind, io);
    case TapKind::found_on_disk:
    case TapKind::disk_rests:
    case TapKind::disk_flushed:
    case TapKind::disk_done:
    case TapKind::disk_ordered: return follow_disk(record.kind, io);
  }
}

void Replayer::add(ByteReader& io) {
  auto request = read_request(io, report_.head.config.kv);
  if (!request) return fails(request.error().message);
  if (!known_.insert((*request)->id).second) return fails("a request came twice");
  ++report_.requests;
  scheduler_->add(std::move(*request));
}

void Replayer::plan(ByteReader& io) {
  TimePoint now{};
  io(now);
  io.table(drafts_, 2);
  io.table(moves_, 1);
  pass_plan(io, recorded_);
  if (io.failed() || now < planned_at_) return fails("a plan is not whole");
  if (planned_something_) return fails("a step was planned before the last one had ended");
  planned_at_ = now;
  if (report_.plans == 0) report_.began = now;
  report_.ended = now;
  scheduler_->next_batch(now, batch_);
  encodings_.clear();
  scheduler_->take_encoding_orders(encodings_);  // follow from the plan
  planned_.set(batch_);
  compare_finished();
  if (stopped()) return;
  if (const auto what = planned_.difference(recorded_)) return differs(*what);
  ++report_.plans;
  planned_something_ = !batch_.empty();
  scheduler_->take_events(events_);
  events_.clear();
}

// What draft tokens agreed with is known when their sequence has spoken: in this step, or, where the step has no row of
// it, in one of the next before it is drafted for again.
void Replayer::look_ahead(RequestId id, std::vector<Token>& agreed) {
  agreed.clear();
  std::vector<std::int64_t> drafts;
  for (std::size_t next = at_ + 1; next < stream_.records.size(); ++next) {
    const Record& record = stream_.records[next];
    ByteReader io(record.parts);
    if (record.kind == TapKind::planned) {
      TimePoint now{};
      io(now);
      io.table(drafts, 2);
      for (std::size_t i = 0; i < drafts.size(); i += 2) {
        if (drafts[i] == static_cast<std::int64_t>(id.value)) return;
      }
    } else if (record.kind == TapKind::computed) {
      pass_result(io, told_);
      const std::optional<std::int64_t> count = told_.agreed(id);
      told_.said(id, agreed);
      if (!count && agreed.empty()) continue;
      const auto most = static_cast<std::size_t>(std::max<std::int64_t>(count.value_or(0), 0));
      return agreed.resize(std::min(agreed.size(), most));
    } else if (record.kind == TapKind::finished) {
      RequestId finished;
      io(finished);
      if (finished == id) return;
    }
  }
}

// Those that agreed with what was said, and behind them such as nothing agrees with.
void Replayer::drafted(const Sequence& sequence, std::vector<Token>& tokens) {
  constexpr Token kNothing = -2;
  tokens.clear();
  for (std::size_t i = 0; i < drafts_.size(); i += 2) {
    if (drafts_[i] != static_cast<std::int64_t>(sequence.id().value)) continue;
    const auto most = static_cast<std::int64_t>(Drafts::kMost);
    const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(drafts_[i + 1], 0, most));
    look_ahead(sequence.id(), tokens);
    tokens.resize(std::min(tokens.size(), count));
    return tokens.resize(count, kNothing);
  }
}

void Replayer::found_moved(const Sequence& waiting, Moved found) {
  found.slot = {};
  found.text = {};
  constexpr std::size_t kHead = 6;
  for (std::size_t i = 0; i + kHead <= moves_.size();) {
    const std::int64_t* const row = &moves_[i];
    const auto gaps = static_cast<std::size_t>(std::max<std::int64_t>(row[5], 0));
    if (gaps > (moves_.size() - i - kHead) / 2) return;
    if (row[0] == static_cast<std::int64_t>(waiting.id().value)) {
      found.slot = SlotId{static_cast<std::int32_t>(row[1])};
      found.text.length = static_cast<TokenCount>(row[2]);
      found.text.clean = static_cast<TokenCount>(row[3]);
      found.text.end = static_cast<TokenCount>(row[4]);
      for (std::size_t g = 0; g < gaps; ++g) {
        found.text.gaps.push_back(
            {static_cast<TokenCount>(row[kHead + 2 * g]), static_cast<TokenCount>(row[kHead + 2 * g + 1])});
      }
      return;
    }
    i += kHead + 2 * gaps;
  }
}

void Replayer::commit(ByteReader& io) {
  pass_result(io, told_);
  if (io.failed()) return fails("what came of a step is not whole");
  if (!planned_something_) return fails("a step was computed that was not planned");
  if (const auto why = told_.misfit(batch_)) return fails("what came of a step does not go with it: " + *why);
  planned_something_ = false;
  told_.give(result_);
  report_.ended = result_.finished;
  if (options_.computed) options_.computed(batch_, result_, planned_at_);
  scheduler_->commit(batch_, result_);
  end_leases(batch_, result_);
  ++report_.steps;
  scheduler_->take_events(events_);
  events_.clear();
  if (options_.committed) options_.committed(*scheduler_);
}

// In the same order. By the time of a plan the same requests have finished.
void Replayer::compare_finished() {
  const auto told = [](const Finished& one) {
    return "request " + std::to_string(one.first.value) + " (" + std::string(name(one.second)) + ")";
  };
  for (std::size_t i = 0; i < std::max(ended_here_.size(), ended_there_.size()); ++i) {
    if (i == ended_there_.size()) return differs(told(ended_here_[i]) + " finishes, and did not");
    if (i == ended_here_.size()) return differs(told(ended_there_[i]) + " does not finish, and did");
    if (ended_here_[i] == ended_there_[i]) continue;
    return differs(told(ended_here_[i]) + " finishes, recorded was that " + told(ended_there_[i]) + " does");
  }
  ended_here_.clear();
  ended_there_.clear();
}

void Replayer::compare_occupancy(ByteReader& io) {
  Occupancy recorded;
  pass_occupancy(io, recorded);
  if (io.failed()) return;  // which run() says
  if (!occupancy_) return fails("it is said what a step has left that was not computed");
  const std::tuple<const char*, std::int64_t, std::int64_t> figures[] = {
      {"running", occupancy_->running, recorded.running},
      {"waiting", sum(occupancy_->waiting), sum(recorded.waiting)},
      {"streams", sum(occupancy_->streams), sum(recorded.streams)},
      {"cells", occupancy_->cells, recorded.cells},
  };
  for (const auto& [name, here, there] : figures) {
    if (here == there) continue;
    return differs(std::string(name) + " after the step before it: " + std::to_string(here) + ", recorded was " +
                   std::to_string(there));
  }
  if (*occupancy_ != recorded) return differs("the classes of those that wait, after the step before it");
  occupancy_.reset();
}

std::string Replayer::place() const {
  const double time = to_seconds(report_.ended - report_.began);
  return "step " + std::to_string(report_.plans + 1) + " (record " + std::to_string(at_) + ", " + std::to_string(time) +
         " s)";
}

void Replayer::differs(const std::string& what) {
  report_.difference = place() + ": " + what;
  if (!copies_are_out_) return;
  *report_.difference += "; a client had fetched a slot before: when it let go of the copy is not recorded";
}

void Replayer::fails(const std::string& why) { report_.fault = place() + ": " + why; }

}  // namespace chasqui
