// Shares the snapshots of one model's disk tier with other nodes: puts what its workers have written to their folder
// into a store, tells them what other nodes have put there, reads it for them, and removes the oldest where there is
// too much. Two threads, so that a read never waits for a snapshot that is being sent: one lists, sends and removes,
// the other one reads. Owned by the Engine; workers call from their threads, and are told from these.
//
// Each snapshot in the store that is of this model has a number (is_shared_file()), which stands for it in the tiers
// of all workers. A worker may know a number that is gone, or forget one that is there: both cost a read at most.
//
// What is sent is read from the folder again, so what waits holds no memory. bounded: snapshots that wait to
// be sent, of which the oldest is dropped, and what the store may hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/metric_set.h"
#include "cache/disk_order.h"
#include "cache/snapshot_folder.h"
#include "engine/shared_snapshot_store.h"

namespace chasqui {

struct ExchangeMetrics : MetricSet {
  Gauge snapshots{*this, {"chasqui_shared_snapshots", "Sequences in the shared store that this model can use."}};
  Gauge bytes{*this, {"chasqui_shared_snapshot_bytes", "Size of all that are there, of whichever model."}};
  Counter sent{*this, {"chasqui_shared_snapshots_sent_total", "Sequences put into the shared store."}};
  Counter sent_bytes{*this, {"chasqui_shared_snapshot_sent_bytes_total", "Bytes of them."}};
  Counter dropped{*this, {"chasqui_shared_snapshots_dropped_total", "Sequences not sent, because others came faster."}};
  Counter removed{*this, {"chasqui_shared_snapshots_removed_total", "Sequences that this node removed for room."}};
  Counter failures{*this, {"chasqui_shared_snapshot_failures_total", "Times that the shared store refused or failed."}};
  Counter read{*this,
               {"chasqui_shared_snapshots_read_total", "Sequences read from the shared store.", "result=\"read\""}};
  Counter not_read{*this, {"chasqui_shared_snapshots_read_total", {}, "result=\"failed\""}};
  Counter read_bytes{*this, {"chasqui_shared_snapshot_read_bytes_total", "KV read from the shared store."}};
  Histogram read_seconds{*this, {"chasqui_shared_snapshot_read_seconds", "Time to read and check one."}};
};

class SnapshotExchange {
 public:
  // Is told on the exchange's threads, and must not block.
  using Deliver = std::function<void(DiskOutcome)>;
  // How many snapshots of the tenant there were, and whether all of them are gone.
  using Erased = std::function<void(std::size_t snapshots, bool all)>;

  struct Parts {
    SharedSnapshotStores stores;
    std::shared_ptr<SnapshotFolder> folder;
    SnapshotLimits limits;
  };

  // `clock` outlives the exchange.
  SnapshotExchange(Parts parts, const Clock& clock);
  ~SnapshotExchange() { stop(); }
  SnapshotExchange(const SnapshotExchange&) = delete;
  SnapshotExchange& operator=(const SnapshotExchange&) = delete;

  // Before start(): a worker that is told what is found and gone, and gets what it orders.
  void join(Deliver deliver) { workers_.push_back(std::move(deliver)); }
  void start();
  // Waits for its threads, and so for what they have asked the store for; no worker is told anything afterwards.
  // Erasures that it has not begun are told that they have failed.
  void stop();

  // --- workers

  // What of the orders is about shared files leaves the list, and is carried out for the worker of that number.
  void take(std::size_t worker, std::vector<DiskOrder>& orders);
  // A file of the folder was written just now.
  void offer(std::uint64_t file, std::uint64_t tenant);
  // Nothing of this tenant (LastingKey::tenant) is in the store any more, nor gets there of what was offered before.
  void erase(std::uint64_t tenant, Erased erased);

  const ExchangeMetrics& metrics() const { return metrics_; }

 private:
  struct Offer {
    std::uint64_t file = 0;
    std::optional<std::uint64_t> tenant;  // none: not known
    int tries = 0;
  };
  struct Erasure {
    std::uint64_t tenant = 0;
    Erased erased;
  };
  // It was read, and is no snapshot or not there.
  struct Damaged {
    std::uint64_t file = 0;
  };
  using Job = std::variant<Offer, Erasure, Damaged>;
  // For the thread that reads.
  struct Named {
    std::uint64_t file = 0;
    std::optional<SharedSnapshot> snapshot;  // none: it is gone
  };
  struct Read {
    std::uint64_t file = 0;
    std::size_t worker = 0;
  };
  using ReadJob = std::variant<Named, Read>;

  void run();
  void take_job(Job& job);
  void look();
  void tell_some();
  void tell_of(const std::vector<SharedSnapshot>& of);
  void tell(const DiskOutcome& outcome);
  void forget_name(const std::string& name);
  void send_one();
  bool is_there(const Checksum& content) const;
  Result<void> send(LoadedSnapshot snapshot);
  Result<void> make_room(std::uint64_t bytes);
  void erase_now(Erasure& erasure);
  void remove_damaged(std::uint64_t file);
  void failed(const Error& error, bool& complained);
  void works(bool& complained);

  void run_reads();
  void read_one(const std::map<std::uint64_t, SharedSnapshot>& names, const Read& read);

  const SharedSnapshotStores stores_;
  const std::shared_ptr<SnapshotFolder> folder_;
  const SnapshotLimits limits_;
  const Clock& clock_;
  std::vector<Deliver> workers_;
  ExchangeMetrics metrics_;
  std::atomic<bool> ends_{false};
  Mailbox<Job> inbox_;
  Mailbox<ReadJob> reads_;

  // The first thread's.
  std::map<std::string, SharedSnapshot> there_;   // as of the last list and what was done since
  std::map<std::string, std::uint64_t> numbers_;  // of those that workers were told of
  std::deque<std::string> to_tell_;               // names of new ones
  std::vector<std::uint64_t> gone_;               // numbers that workers are still to be told of
  std::deque<Offer> offers_;
  std::unordered_map<std::uint64_t, Checksum> contents_;  // of files of the folder that were offered
  std::uint64_t bytes_ = 0;                               // of there_
  std::uint64_t last_number_ = kSharedFiles;
  TimePoint next_look_{};
  TimePoint next_strays_{};
  TimePoint next_send_{};
  // One line for a row of failures.
  bool complained_of_lists_ = false;
  bool complained_of_heads_ = false;
  bool complained_of_sends_ = false;

  std::thread lister_;  // last: everything above exists before they start
  std::thread reader_;
};

}  // namespace chasqui
