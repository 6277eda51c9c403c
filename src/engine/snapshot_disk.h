// The two threads that do the file I/O of one worker: one reads, so that a request that waits for a file never waits
// for a write to be synced, the other does the rest in the order in which it came. They take orders through mailboxes
// and hand what came of them to `deliver`, which runs on these threads and must not block. No file is ordered to be
// read and written or removed at the same time; a file of another worker may go while it is read, and is missing then.
// Owned by the Worker. Bounded: the scheduler's DiskTier orders one write and a few reads at a time; touches are
// dropped when there are many.
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
  // Carries out what was ordered and waits for the threads.
  ~SnapshotDisk();
  SnapshotDisk(const SnapshotDisk&) = delete;
  SnapshotDisk& operator=(const SnapshotDisk&) = delete;

  // Worker. Takes all of them.
  void order(std::vector<DiskOrder>& orders);

 private:
  void run(Mailbox<DiskOrder>& inbox, const char* name);
  void carry_out(DiskOrder& order);
  void read(const DiskOrder& order, DiskOutcome& outcome);
  void write(DiskOrder& order, DiskOutcome& outcome);
  void remove(std::uint64_t file);
  void sync(DiskOutcome& outcome);

  const std::shared_ptr<SnapshotFolder> folder_;
  const SnapshotLimits limits_;
  const Clock& clock_;
  const Deliver deliver_;
  Mailbox<DiskOrder> reads_;
  Mailbox<DiskOrder> rest_;
  std::vector<DiskOrder> to_read_;   // worker only
  bool complained_ = false;          // the writing thread only: one line for a row of writes that fail
  std::vector<std::uint64_t> left_;  // … files that could not be removed; each sync tries again

  std::thread reader_;  // last: everything above exists before they start
  std::thread writer_;
};

}  // namespace chasqui
