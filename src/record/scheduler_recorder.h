// Writes down what one worker's scheduler is told and plans, so that Replay can tell it the same again. Each call adds
// a few bytes to a buffer; when that is large, or its beginning a hundredth of a second old, it goes to the RecordSink
// in one push. Owned by the Worker, and used on its thread. After the buffer has grown once, a step allocates nothing;
// a request has one entry here until it has finished.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/record_sink.h"
#include "record/recorded_head.h"
#include "record/recorded_plan.h"
#include "record/recorded_result.h"
#include "record/stand_ins.h"
#include "sched/scheduler_tap.h"

namespace chasqui {

class SchedulerRecorder final : public SchedulerTap {
 public:
  // `sink` outlives it; no other recorder has this stream. Those whose prompts and tenants are to be compared have the
  // same secret.
  SchedulerRecorder(RecordSink& sink, std::uint32_t stream, const RecordedHead& head, StandIns::Secret secret);
  // What is in the buffer goes to the sink.
  ~SchedulerRecorder() override;
  SchedulerRecorder(const SchedulerRecorder&) = delete;
  SchedulerRecorder& operator=(const SchedulerRecorder&) = delete;

  void added(const Request& request) override;
  void cancelled(RequestId id, TimePoint now, FinishReason reason) override;
  void all_cancelled(TimePoint now) override;
  void all_failed(const Error& error, TimePoint now) override;
  void tenant_forgotten(const Tenant& tenant, std::uint64_t ticket) override;
  void slots_copied_out(TimePoint now) override;
  void slots_emptied() override;
  void slot_copy_wanted(std::int32_t slot, const Tenant& tenant) override;
  void slot_copied(std::int32_t slot, const Tenant& tenant) override;
  void slot_adopted(std::int32_t slot, const Tenant& tenant, const SlotCopy& copy, TimePoint now) override;
  void found_on_disk(const FoundSnapshot& file) override;
  void disk_rests() override;
  void disk_flushed() override;
  void disk_done(const DiskOutcome& outcome, TimePoint now) override;
  void encoded(const EncodingOutcome& outcome, TimePoint now) override;
  void load_asked() override;
  void computed(const Batch& batch, const BatchResult& result) override;
  void planned(TimePoint now, const Batch& batch) override;
  void committed(const Occupancy& occupancy) override;
  void disk_ordered(std::span<const DiskOrder> orders) override;
  void finished(RequestId id, FinishReason reason) override;
  void drafted(const Sequence& sequence, std::vector<Token>& tokens) override;
  void found_moved(const Sequence& waiting, Moved found) override;

 private:
  // One record of this kind, with what `write` writes.
  template <class Write>
  void record(TapKind kind, Write write);
  template <class... Parts>
  void record_parts(TapKind kind, const Parts&... parts);
  void hand_over();
  Tenant renamed(const Tenant& tenant) const;
  // Stand-ins for all of a text.
  const std::vector<Token>& stand_ins_of(std::span<const Token> tokens, StandIns::Place& place);

  RecordSink& sink_;
  const std::uint32_t stream_;
  const StandIns stand_ins_;
  std::string buffer_;
  TimePoint handed_over_{};
  bool ended_ = false;
  std::unordered_map<RequestId, StandIns::Place> places_;  // of those that have not finished: the end of their texts
  RecordedPlan plan_;
  RecordedResult result_;
  std::unordered_map<RequestId, std::vector<Token>> drafted_;  // the newest draft tokens, until it speaks
  std::vector<std::int64_t> drafts_;                           // request, how many
  std::vector<std::int64_t> moves_;  // request, slot, length, clean, end, how many gaps; and then these
  std::vector<Token> scratch_;
};

}  // namespace chasqui
