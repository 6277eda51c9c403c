// The thread that does the file I/O of one worker: takes orders through a mailbox, reads before it writes, and hands
// what came of them to `deliver`, which runs on this thread and must not block. Owned by the Worker; the folder is used
// by this thread alone from the constructor on. Bounded: the scheduler's DiskTier orders one write and a few reads at a
// time; touches are dropped when there are many.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "cache/disk_order.h"
#include "cache/snapshot_folder.h"

namespace chasqui {

class SnapshotDisk {
 public:
  using Deliver = std::function<void(DiskOutcome)>;

  // `clock` outlives the disk.
  SnapshotDisk(std::shared_ptr<SnapshotFolder> folder, const SnapshotLimits& limits, const Clock& clock,
               Deliver deliver);
  // Carries out what was ordered and waits for the thread.
  ~SnapshotDisk();
  SnapshotDisk(const SnapshotDisk&) = delete;
  SnapshotDisk& operator=(const SnapshotDisk&) = delete;

  // Worker. Takes all of them.
  void order(std::vector<DiskOrder>& orders);

 private:
  void run();
  void carry_out(DiskOrder& order);
  void read(const DiskOrder& order, DiskOutcome& outcome);
  void write(DiskOrder& order, DiskOutcome& outcome);

  const std::shared_ptr<SnapshotFolder> folder_;
  const SnapshotLimits limits_;
  const Clock& clock_;
  const Deliver deliver_;
  Mailbox<DiskOrder> inbox_;
  bool complained_ = false;  // this thread only: one line for a row of writes that fail

  std::thread thread_;  // last: everything above exists before it starts
};

}  // namespace chasqui
