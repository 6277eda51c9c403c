// All files and batches of all tenants, and the folder that keeps them: what is here is on disk, and what is on disk is
// here. Nothing is seen by another tenant than its own. Owned by the application; loop thread. The disk is read and
// written by one thread of its own, in the order in which that was asked for.
//
// said-is-kept: a file or a batch is acknowledged once it is on disk, whatever ends the process then.
//
// bounded: bytes in all and of each tenant, files and batches of each tenant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/batch/batch_job.h"
#include "api/batch/batch_metrics.h"
#include "api/batch/stored_file.h"
#include "base/clock.h"
#include "jobs/job_folder.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {

class BatchStore {
 public:
  // What is uploaded: the bytes are a part of `body`.
  struct Upload {
    StoredFile file;
    std::shared_ptr<const std::string> body;
    std::string_view content;
    bool alone = false;  // no other tenant is to be protected from this one
  };

  // `loop` and `clock` outlive it. A null folder is for what only shows metrics.
  BatchStore(std::shared_ptr<JobFolder> folder, std::uint64_t disk_max, net::EventLoop& loop, const Clock& clock);
  BatchStore(const BatchStore&) = delete;
  BatchStore& operator=(const BatchStore&) = delete;

  // At the start: what an earlier process has left. What cannot be read is logged and left.
  void load();

  net::Awaitable<Result<StoredFilePtr>> add_file(Upload upload);
  // Null: the tenant has none with this id.
  StoredFilePtr find_file(std::uint64_t owner, std::string_view id) const;
  // In the order in which they were made.
  std::vector<StoredFilePtr> files_of(std::uint64_t owner) const;
  net::Awaitable<Result<void>> remove_file(StoredFilePtr file);
  // Of results: on disk already.
  void put_file(StoredFile file);

  net::Awaitable<Result<BatchJobPtr>> add_job(BatchJob job);
  BatchJobPtr find_job(std::uint64_t owner, std::string_view id) const;
  std::vector<BatchJobPtr> jobs_of(std::uint64_t owner) const;
  std::vector<BatchJobPtr> all_jobs() const;
  std::size_t open_jobs(std::uint64_t owner) const;
  void set_status(BatchJob& job, BatchStatus status);
  // As it is now.
  net::Awaitable<Result<void>> save(BatchJob& job);
  // It has ended as `after` says, which is saved: its input file may go.
  void end_job(BatchJob& job, BatchJob after);
  // … and its results have become files.
  net::Awaitable<void> settle(BatchJobPtr job, std::uint64_t results_bytes);

  // Bytes of results, which will be in the output file as well.
  void charge_results(std::uint64_t owner, std::int64_t bytes) { charge(owner, 2 * bytes); }
  std::uint64_t next_serial() { return ++serial_; }
  bool is_full() const { return used_ > disk_max_; }
  // Whether this tenant has more than it may have beside others.
  bool is_over_share(std::uint64_t owner) const;
  // Files and batches whose time is over. `known` says whether this owner may still come and delete them; for one who
  // may not, it is over when that has been so for as long as an ended batch is kept, as far as this process has seen.
  net::Awaitable<void> forget_old(std::function<bool(std::uint64_t owner)> known);

  // On the thread of the disk. `function` owns what it uses.
  template <class F>
  net::Awaitable<net::OffloadPool::ResultOf<F>> run(F function, std::size_t bytes = 0) {
    net::OffloadTerms terms;
    terms.bytes = bytes;
    return pool_.run(std::move(function), std::move(terms));
  }
  const std::shared_ptr<JobFolder>& folder() const { return folder_; }
  const Clock& clock() const { return clock_; }
  BatchMetrics& metrics() { return metrics_; }
  // Runs when bytes have become free.
  void on_room(std::function<void()> callback) { on_room_ = std::move(callback); }

 private:
  struct Shelf {
    std::vector<StoredFilePtr> files;
    std::vector<BatchJobPtr> jobs;
    std::uint64_t bytes = 0;
    std::size_t uploads = 0;         // under way
    std::size_t orders = 0;          // batches that are being written
    std::int64_t unknown_since = 0;  // when its owner was first seen to have no key; 0: it has one
  };

  Result<void> has_room(const Upload& upload);
  void charge(std::uint64_t owner, std::int64_t bytes);
  void load_file(const std::string& name);
  void load_job(const std::string& name);
  void drop_strays(const std::vector<std::string>& names);
  void take_out(const StoredFilePtr& file);
  static bool is_abandoned(Shelf& shelf, bool known, std::int64_t now);
  net::Awaitable<void> forget_job(BatchJobPtr job);

  const std::shared_ptr<JobFolder> folder_;
  const std::uint64_t disk_max_;
  const Clock& clock_;
  net::OffloadPool pool_;
  std::map<std::uint64_t, Shelf> shelves_;  // by the tenant's lasting name
  std::uint64_t used_ = 0;
  std::uint64_t serial_ = 0;
  std::function<void()> on_room_;
  BatchMetrics metrics_;
};

}  // namespace chasqui
