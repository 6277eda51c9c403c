// One replay while it runs: a scheduler, and where it is in the recording. Part of record/replay.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "record/recorded_plan.h"
#include "record/recorded_result.h"
#include "record/replay.h"
#include "sched/occupancy.h"
#include "sched/scheduler_tap.h"

namespace chasqui {

class Replayer final : private SchedulerTap {
 public:
  Replayer(const RecordStream& stream, const ReplayOptions& options) : stream_(stream), options_(options) {}

  ReplayReport run();

 private:
  using Finished = std::pair<RequestId, FinishReason>;
  // What the scheduler is asked for in the recording's place.
  void drafted(const Sequence& sequence, std::vector<Token>& tokens) override;
  void found_moved(const Sequence& waiting, Moved found) override;
  void finished(RequestId id, FinishReason reason) override { ended_here_.emplace_back(id, reason); }
  void committed(const Occupancy& occupancy) override { occupancy_ = occupancy; }

  bool begin();
  void follow(const Record& record, ByteReader& io);
  void add(ByteReader& io);
  void plan(ByteReader& io);
  void commit(ByteReader& io);
  void follow_slots(TapKind kind, ByteReader& io);
  void adopt_slot(ByteReader& io);
  void follow_disk(TapKind kind, ByteReader& io);
  void find_on_disk(ByteReader& io);
  void end_on_disk(ByteReader& io);
  void order_disk(ByteReader& io);
  void compare_finished();
  void compare_occupancy(ByteReader& io);
  void look_ahead(RequestId id, std::vector<Token>& agreed);
  void differs(const std::string& what);
  void fails(const std::string& why);
  bool stopped() const { return !report_.agrees(); }
  std::string place() const;

  const RecordStream& stream_;
  const ReplayOptions& options_;
  ReplayReport report_;
  std::size_t at_ = 0;  // in stream_.records
  std::unique_ptr<Scheduler> scheduler_;
  Batch batch_;
  BatchResult result_;
  bool planned_something_ = false;  // batch_ is to be computed
  TimePoint planned_at_{};
  RecordedPlan recorded_;
  RecordedPlan planned_;
  RecordedResult told_;
  std::vector<std::int64_t> drafts_;
  std::vector<std::int64_t> moves_;
  std::vector<Event> events_;
  std::set<RequestId> known_;         // that have not finished
  std::vector<Finished> ended_here_;  // since the last plan
  std::vector<Finished> ended_there_;
  std::optional<Occupancy> occupancy_;  // after a step, until it is compared
  std::vector<DiskOrder> orders_;
  std::vector<EncodingOrder> encodings_;
  std::set<std::uint64_t> found_;                   // files at the start
  std::map<std::uint64_t, KvSnapshotPtr> written_;  // by file: leases of the disk
  bool copies_are_out_ = false;                     // a client has had a copy of a slot
};

}  // namespace chasqui
