// The file of --record: what the schedulers of all workers are told and plan, for `chasqui replay`. Workers push pieces
// of some milliseconds and go on; a thread of its own writes them. When more waits for the disk than may, when the file
// is as long as it may be, or when it cannot be written, the recording ends, and says so in the file, in the log and in
// a metric; the server goes on. Owned by serve(); outlives all engines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "base/metric_set.h"
#include "record/record_sink.h"
#include "record/recorded_head.h"
#include "record/stand_ins.h"
#include "sched/scheduler_tap.h"

namespace chasqui {

struct RecordMetrics : MetricSet {
  Gauge recording{*this, {"chasqui_recording", "1 while --record writes; 0 where it has ended before the server."}};
  Counter bytes{*this, {"chasqui_record_bytes_total", "Bytes that --record has written."}};
  Gauge waiting{*this, {"chasqui_record_waiting_bytes", "Bytes of the recording that wait for the disk."}};
};

struct RecordLimits {
  std::size_t waiting_bytes = kSizeLimit<"record_waiting_bytes">;
  std::size_t file_bytes = kSizeLimit<"record_bytes">;
};

class RecordWriter final : public RecordSink {
 public:
  // Whether a file can be made there. Makes none, and changes none. Errors name --record.
  static Result<void> check(const std::string& path);
  // An earlier recording of that name is kept as PATH.old. Errors as above.
  static Result<std::unique_ptr<RecordWriter>> open(const std::string& path, const RecordLimits& limits = {});
  // Writes what there is.
  ~RecordWriter() override;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // Of one worker more. Any thread; the writer outlives it.
  std::unique_ptr<SchedulerTap> tap(const RecordedHead& head);

  // Any thread.
  bool take(RecordPiece&& piece) override;
  std::string room() override;

  const RecordMetrics& metrics() const { return metrics_; }

 private:
  RecordWriter(std::string path, int descriptor, const RecordLimits& limits);
  void run();
  void write_piece(const RecordPiece& piece);
  bool write(std::string_view bytes);
  void end(const std::string& why);

  const std::string path_;
  const int descriptor_;
  const RecordLimits limits_;
  const StandIns::Secret secret_ = StandIns::new_secret();
  RecordMetrics metrics_;
  Mailbox<RecordPiece> pieces_;
  Mailbox<std::string> rooms_;  // of pieces that were written
  std::atomic<std::uint32_t> streams_{0};
  std::atomic<std::size_t> waiting_{0};  // bytes
  std::atomic<bool> ended_{false};
  // The writing thread's.
  std::string bytes_;
  std::size_t written_ = 0;
  bool failed_ = false;  // nothing more can be written

  std::thread thread_;
};

}  // namespace chasqui
