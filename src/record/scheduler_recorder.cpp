#include "record/scheduler_recorder.h"

#include <algorithm>

#include "cache/disk_order.h"
#include "cache/snapshot_folder.h"
#include "core/encoding.h"
#include "record/recorded_occupancy.h"
#include "record/recorded_request.h"
#include "sched/moved_text.h"
#include "sched/slot_notes.h"

namespace chasqui {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr Duration kPieceTime = milliseconds(10);

}  // namespace

SchedulerRecorder::SchedulerRecorder(RecordSink& sink, std::uint32_t stream, const RecordedHead& head,
                                     StandIns::Secret secret)
    : sink_(sink), stream_(stream), stand_ins_(secret) {
  record(TapKind::head, [&](ByteWriter& io) { pass_head(io, head); });
  hand_over();
}

SchedulerRecorder::~SchedulerRecorder() { hand_over(); }

template <class Write>
void SchedulerRecorder::record(TapKind kind, Write write) {
  if (ended_) return;
  const std::size_t begun = begin_record(kind, buffer_);
  ByteWriter io(buffer_);
  write(io);
  end_record(begun, buffer_);
  if (buffer_.size() >= kPieceBytes) hand_over();
}

template <class... Parts>
void SchedulerRecorder::record_parts(TapKind kind, const Parts&... parts) {
  record(kind, [&](ByteWriter& io) { io(parts...); });
}

void SchedulerRecorder::hand_over() {
  if (buffer_.empty() || ended_) return;
  ended_ = !sink_.take({stream_, std::move(buffer_)});
  buffer_ = sink_.room();
  buffer_.clear();
  if (!ended_) return;
  places_.clear();
  drafted_.clear();
}

Tenant SchedulerRecorder::renamed(const Tenant& tenant) const {
  return {tenant.id, tenant.weight, stand_ins_.of_name(tenant.lasting)};
}

const std::vector<Token>& SchedulerRecorder::stand_ins_of(std::span<const Token> tokens, StandIns::Place& place) {
  scratch_.clear();
  for (const Token token : tokens) scratch_.push_back(stand_ins_.next(place, token));
  return scratch_;
}

void SchedulerRecorder::added(const Request& request) {
  if (ended_) return;
  StandIns::Place& place = places_[request.id] = stand_ins_.begin();
  const std::vector<Token> prompt = stand_ins_of(request.prompt, place);
  const std::vector<Token>& begun = stand_ins_of(request.begun, place);
  const auto group = static_cast<std::uint32_t>(stand_ins_.of_name(request.group));
  record(TapKind::added,
         [&](ByteWriter& io) { write_request(io, request, prompt, begun, renamed(request.tenant), group); });
}

void SchedulerRecorder::cancelled(RequestId id, TimePoint now, FinishReason reason) {
  record_parts(TapKind::cancelled, id, now, static_cast<std::uint32_t>(reason));
}

void SchedulerRecorder::all_cancelled(TimePoint now) { record_parts(TapKind::all_cancelled, now); }

// Why is told to clients, and changes no plan.
void SchedulerRecorder::all_failed(const Error& /*error*/, TimePoint now) { record_parts(TapKind::all_failed, now); }

void SchedulerRecorder::tenant_forgotten(const Tenant& tenant, std::uint64_t ticket) {
  const Tenant named = renamed(tenant);
  record_parts(TapKind::tenant_forgotten, named.id, named.lasting, ticket);
}

void SchedulerRecorder::slots_copied_out(TimePoint now) { record_parts(TapKind::slots_copied_out, now); }

void SchedulerRecorder::slots_emptied() { record_parts(TapKind::slots_emptied); }

void SchedulerRecorder::slot_copy_wanted(std::int32_t slot, const Tenant& tenant) {
  record_parts(TapKind::slot_copy_wanted, slot, tenant.id);
}

void SchedulerRecorder::slot_copied(std::int32_t slot, const Tenant& tenant) {
  record_parts(TapKind::slot_copied, slot, tenant.id);
}

void SchedulerRecorder::slot_adopted(std::int32_t slot, const Tenant& tenant, const SlotCopy& copy, TimePoint now) {
  if (ended_) return;
  StandIns::Place place = stand_ins_.begin();
  const std::vector<Token>& tokens = stand_ins_of(copy.tokens, place);
  const Tenant named = renamed(tenant);
  record(TapKind::slot_adopted, [&](ByteWriter& io) {
    io(slot, named.id, named.lasting, copy.order, copy.adapters, copy.kv->size(), copy.kv->block_tokens(), now);
    io.tokens(tokens);
  });
}

void SchedulerRecorder::found_on_disk(const FoundSnapshot& file) {
  if (ended_) return;
  StandIns::Place place = stand_ins_.begin();
  const std::vector<Token>& tokens = stand_ins_of(file.tokens, place);
  record(TapKind::found_on_disk, [&](ByteWriter& io) {
    io(file.number, file.bytes, file.usable, stand_ins_.of_name(file.key.tenant), file.key.adapter);
    io.tokens(tokens);
  });
}

void SchedulerRecorder::disk_rests() { record_parts(TapKind::disk_rests); }

void SchedulerRecorder::disk_flushed() { record_parts(TapKind::disk_flushed); }

void SchedulerRecorder::disk_done(const DiskOutcome& outcome, TimePoint now) {
  if (ended_) return;
  StandIns::Place place = stand_ins_.begin();
  const std::vector<Token>& tokens = stand_ins_of(outcome.tokens, place);
  const bool failed = outcome.error.has_value();
  const ErrorCode code = failed ? outcome.error->code : ErrorCode{};
  const bool read = outcome.kind == DiskOrder::Kind::read && outcome.kv != nullptr;
  const std::size_t bytes = read ? outcome.kv->size() : 0;
  const TokenCount block = read ? outcome.kv->block_tokens() : 0;
  record(TapKind::disk_done, [&](ByteWriter& io) {
    io(static_cast<std::uint32_t>(outcome.kind), outcome.file, failed, static_cast<std::uint32_t>(code), outcome.took,
       now, read, bytes, block, stand_ins_.of_name(outcome.key.tenant), outcome.key.adapter, outcome.bytes);
    io.tokens(tokens);
  });
}

void SchedulerRecorder::encoded(const EncodingOutcome& outcome, TimePoint now) {
  record_parts(TapKind::encoded, outcome.request, outcome.begin, outcome.fresh, outcome.error.has_value(), now);
}

void SchedulerRecorder::load_asked() { record_parts(TapKind::load_asked); }

void SchedulerRecorder::disk_ordered(std::span<const DiskOrder> orders) {
  record(TapKind::disk_ordered, [&](ByteWriter& io) {
    io(orders.size());
    for (const DiskOrder& order : orders) io(static_cast<std::uint32_t>(order.kind), order.file);
  });
}

void SchedulerRecorder::drafted(const Sequence& sequence, std::vector<Token>& tokens) {
  if (ended_) return;
  std::vector<Token>& newest = drafted_[sequence.id()];
  if (newest.empty() && tokens.empty()) return;
  newest = tokens;
  drafts_.insert(drafts_.end(),
                 {static_cast<std::int64_t>(sequence.id().value), static_cast<std::int64_t>(tokens.size())});
}

void SchedulerRecorder::found_moved(const Sequence& waiting, Moved found) {
  const auto& [length, clean, end, gaps] = found.text;
  if (gaps.empty()) return;
  moves_.insert(moves_.end(), {static_cast<std::int64_t>(waiting.id().value), found.slot.value, length, clean, end,
                               static_cast<std::int64_t>(gaps.size())});
  for (const MovedText::Gap& gap : gaps) moves_.insert(moves_.end(), {gap.from, gap.to});
}

void SchedulerRecorder::planned(TimePoint now, const Batch& batch) {
  plan_.set(batch);
  record(TapKind::planned, [&](ByteWriter& io) {
    io(now);
    io.table(drafts_, 2);
    io.table(moves_, 1);
    pass_plan(io, std::as_const(plan_));
  });
  moves_.clear();
  drafts_.clear();
  // A step that never ends, or ends the process, is in the file.
  if (now - handed_over_ < kPieceTime && !batch.empty()) return;
  handed_over_ = now;
  hand_over();
}

void SchedulerRecorder::computed(const Batch& /*batch*/, const BatchResult& result) {
  if (ended_) return;
  scratch_.clear();
  for (const Sample& sample : result.samples) {
    scratch_.push_back(stand_ins_.next(places_[sample.request], sample.token));
  }
  result_.set(result, scratch_);
  for (std::size_t i = 0; i < result.samples.size();) {
    const RequestId id = result.samples[i].request;
    const auto found = drafted_.find(id);
    std::size_t agreed = 0;
    bool agrees = true;
    for (; i < result.samples.size() && result.samples[i].request == id; ++i) {
      agrees = agrees && found != drafted_.end() && agreed < found->second.size() &&
               found->second[agreed] == result.samples[i].token;
      agreed += agrees ? 1 : 0;
    }
    if (found == drafted_.end() || found->second.empty()) continue;
    result_.add_agreed(id, agreed);
    found->second.clear();
  }
  record(TapKind::computed, [&](ByteWriter& io) { pass_result(io, std::as_const(result_)); });
}

void SchedulerRecorder::committed(const Occupancy& occupancy) {
  record(TapKind::committed, [&](ByteWriter& io) { pass_occupancy(io, occupancy); });
}

void SchedulerRecorder::finished(RequestId id, FinishReason reason) {
  places_.erase(id);
  drafted_.erase(id);
  record_parts(TapKind::finished, id, static_cast<std::uint32_t>(reason));
}

}  // namespace chasqui
