#include "api/batch/batch_store.h"

#include <algorithm>

#include "base/limits.h"
#include "base/log.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

constexpr std::size_t kMetaMax = 1 << 20;
constexpr std::int64_t kKeptSeconds = kCountLimit<"batch_keep_seconds"> / 1000;

// "batch_x.job" → "batch_x".
std::string stem_of(const std::string& file_name) { return file_name.substr(0, file_name.rfind('.')); }

void tell_unusable(const std::string& file_name, const std::string& why) {
  log_error("a file of --batch-dir cannot be used", {{"name", file_name}, {"reason", why}});
}

template <class Pointer>
Pointer with_id(const std::vector<Pointer>& shelf, std::string_view id) {
  const auto found = std::ranges::find_if(shelf, [&](const Pointer& one) { return one->id == id; });
  return found == shelf.end() ? nullptr : *found;
}

Error disk_error(const Error& error, const std::string& what) {
  const bool full = error.code == ErrorCode::storage_full;
  const bool busy = error.code == ErrorCode::overloaded;
  return {full   ? ErrorCode::storage_full
          : busy ? ErrorCode::overloaded
                 : ErrorCode::unavailable,
          what + " could not be written to disk (" + error.message + ")", ""};
}

}  // namespace

BatchStore::BatchStore(std::shared_ptr<JobFolder> folder, std::uint64_t disk_max, net::EventLoop& loop,
                       const Clock& clock)
    : folder_(std::move(folder)),
      disk_max_(disk_max),
      clock_(clock),
      pool_(loop, net::OffloadOptions{.threads = 1, .stack_bytes = 1 << 21, .name = "batches", .yields = true}) {}

void BatchStore::charge(std::uint64_t owner, std::int64_t bytes) {
  shelves_[owner].bytes += static_cast<std::uint64_t>(bytes);
  used_ += static_cast<std::uint64_t>(bytes);
  metrics_.disk_bytes.set(static_cast<std::int64_t>(used_));
  if (bytes < 0 && on_room_) on_room_();
}

bool BatchStore::is_over_share(std::uint64_t owner) const {
  const auto shelf = shelves_.find(owner);
  return shelf != shelves_.end() && shelf->second.bytes > kSizeLimit<"batch_tenant_bytes">;
}

void BatchStore::load() {
  const std::vector<std::string> names = folder_->names();
  for (const std::string& name : names) {
    if (name.ends_with(".meta")) load_file(name);
  }
  for (const std::string& name : names) {
    if (name.ends_with(".job")) load_job(name);
  }
  drop_strays(names);
  std::size_t files = 0;
  std::size_t jobs = 0;
  for (auto& [owner, shelf] : shelves_) {
    std::ranges::sort(shelf.files, {}, [](const StoredFilePtr& file) { return file->serial; });
    std::ranges::sort(shelf.jobs, {}, [](const BatchJobPtr& job) { return job->serial; });
    files += shelf.files.size();
    jobs += shelf.jobs.size();
  }
  log_info("files and batches on disk", {{"folder", folder_->path()}, {"files", files}, {"batches", jobs}});
}

void BatchStore::load_file(const std::string& name) {
  const auto text = folder_->read(name, kMetaMax);
  if (!text) return tell_unusable(name, text.error().message);
  auto file = read_file_meta(*text);
  if (!file) return tell_unusable(name, file.error().message);
  const auto bytes = folder_->open_file(bytes_name(file->id));
  if (!bytes) return tell_unusable(name, bytes.error().message);
  if (meta_name(file->id) != name || bytes->bytes != file->bytes) return tell_unusable(name, "it is of another file");
  serial_ = std::max(serial_, file->serial);
  put_file(std::move(*file));
}

void BatchStore::load_job(const std::string& name) {
  const auto text = folder_->read(name, kMetaMax);
  if (!text) return tell_unusable(name, text.error().message);
  auto read = read_job(*text);
  if (!read) return tell_unusable(name, read.error().message);
  if (job_name(read->id) != name) return tell_unusable(name, "it is of another batch");
  serial_ = std::max(serial_, read->serial);
  const auto job = std::make_shared<BatchJob>(std::move(*read));
  shelves_[job->owner].jobs.push_back(job);
  metrics_.batches[static_cast<std::size_t>(job->status)].add(1);
  if (has_ended(job->status)) return;
  if (const StoredFilePtr file = find_file(job->owner, job->input_file)) ++file->users;
}

// What the end of a process has left between two steps: bytes without a word about them, results that have become
// files.
void BatchStore::drop_strays(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    bool stray = false;
    const std::string stem = stem_of(name);
    if (name.ends_with(".bytes")) {
      stray = !std::ranges::binary_search(names, meta_name(stem));
    } else if (name.ends_with(".results")) {
      stray = !std::ranges::binary_search(names, job_name(stem));
      for (const auto& [owner, shelf] : shelves_) {
        const BatchJobPtr job = with_id(shelf.jobs, stem);
        stray = stray || (job && has_ended(job->status));
      }
    }
    if (!stray) continue;
    if (auto removed = folder_->remove(name); !removed) tell_unusable(name, removed.error().message);
  }
}

Result<void> BatchStore::has_room(const Upload& upload) {
  const Shelf& shelf = shelves_[upload.file.owner];
  if (shelf.files.size() + shelf.uploads >= kSizeLimit<"batch_files">) {
    return Error{ErrorCode::quota_exceeded,
                 "at most " + std::to_string(kSizeLimit<"batch_files">) + " files may be kept; delete some", "file"};
  }
  if (!upload.alone && shelf.bytes + upload.file.bytes > kSizeLimit<"batch_tenant_bytes">) {
    return Error{ErrorCode::too_large,
                 "your files and results may have " + std::to_string(kSizeLimit<"batch_tenant_bytes">) +
                     " bytes together; delete some",
                 "file"};
  }
  if (used_ + upload.file.bytes > disk_max_) {
    return Error{
        ErrorCode::storage_full,
        "all files and results may have " + std::to_string(disk_max_) + " bytes together (--batch-mib); delete some",
        ""};
  }
  return {};
}

net::Awaitable<Result<StoredFilePtr>> BatchStore::add_file(Upload upload) {
  StoredFile file = std::move(upload.file);
  file.id = random_id("file-");
  file.bytes = upload.content.size();
  file.created = clock_.unix_seconds();
  upload.file.owner = file.owner;
  upload.file.bytes = file.bytes;
  if (auto room = has_room(upload); !room) co_return room.error();
  file.serial = ++serial_;
  const auto bytes = static_cast<std::int64_t>(file.bytes);
  ++shelves_[file.owner].uploads;
  charge(file.owner, bytes);
  // Frees the body, too: a large one would hold the loop.
  auto work = [folder = folder_, id = file.id, meta = file_meta(file), body = std::move(upload.body),
               content = upload.content]() mutable -> Result<void> {
    FileWriter writer(*folder, bytes_name(id));
    Result<void> written = writer.add(content);
    body.reset();
    if (written) written = writer.finish();
    if (!written) return written;
    written = folder->put(meta_name(id), meta);
    if (!written) static_cast<void>(folder->remove(bytes_name(id)).has_value());
    return written;
  };
  const Result<void> written = co_await run(std::move(work), file.bytes);
  --shelves_[file.owner].uploads;
  charge(file.owner, -bytes);
  if (!written) {
    metrics_.write_failures.add();
    co_return disk_error(written.error(), "the file");
  }
  const std::uint64_t owner = file.owner;
  const std::string id = file.id;
  put_file(std::move(file));
  co_return find_file(owner, id);
}

void BatchStore::put_file(StoredFile file) {
  Shelf& shelf = shelves_[file.owner];
  if (const StoredFilePtr there = with_id(shelf.files, file.id)) take_out(there);
  charge(file.owner, static_cast<std::int64_t>(file.bytes));
  shelf.files.push_back(std::make_shared<StoredFile>(std::move(file)));
  metrics_.files.add(1);
}

void BatchStore::take_out(const StoredFilePtr& file) {
  Shelf& shelf = shelves_[file->owner];
  if (std::erase(shelf.files, file) == 0) return;
  charge(file->owner, -static_cast<std::int64_t>(file->bytes));
  metrics_.files.add(-1);
}

StoredFilePtr BatchStore::find_file(std::uint64_t owner, std::string_view id) const {
  const auto shelf = shelves_.find(owner);
  return shelf == shelves_.end() ? nullptr : with_id(shelf->second.files, id);
}

std::vector<StoredFilePtr> BatchStore::files_of(std::uint64_t owner) const {
  const auto shelf = shelves_.find(owner);
  return shelf == shelves_.end() ? std::vector<StoredFilePtr>() : shelf->second.files;
}

net::Awaitable<Result<void>> BatchStore::remove_file(StoredFilePtr file) {
  if (file->users > 0) {
    co_return Error{ErrorCode::conflict, "a batch that has not ended reads this file; cancel the batch first", ""};
  }
  take_out(file);
  // What is said of it goes first: bytes without that are removed at the next start.
  auto work = [folder = folder_, id = file->id]() -> Result<void> {
    if (auto removed = folder->remove(meta_name(id)); !removed) return removed;
    return folder->remove(bytes_name(id));
  };
  const Result<void> removed = co_await run(std::move(work));
  if (removed) co_return Result<void>();
  metrics_.write_failures.add();
  co_return disk_error(removed.error(), "the removal of the file");
}

net::Awaitable<Result<BatchJobPtr>> BatchStore::add_job(BatchJob job) {
  // Written meanwhile: the input file must stay.
  const StoredFilePtr input = find_file(job.owner, job.input_file);
  CHECK(input != nullptr, "a batch without a file");
  ++input->users;
  ++shelves_[job.owner].orders;
  const auto made = std::make_shared<BatchJob>(std::move(job));
  made->serial = ++serial_;
  const Result<void> saved = co_await save(*made);
  Shelf& shelf = shelves_[made->owner];
  --shelf.orders;
  if (!saved) {
    --input->users;
    co_return saved.error();
  }
  shelf.jobs.push_back(made);
  metrics_.batches[static_cast<std::size_t>(made->status)].add(1);
  const auto oldest = std::ranges::find_if(shelf.jobs, [](const BatchJobPtr& one) { return has_ended(one->status); });
  if (shelf.jobs.size() > kSizeLimit<"batches_kept"> && oldest != shelf.jobs.end()) {
    BatchJobPtr forgotten = *oldest;
    co_await forget_job(std::move(forgotten));
  }
  co_return made;
}

BatchJobPtr BatchStore::find_job(std::uint64_t owner, std::string_view id) const {
  const auto shelf = shelves_.find(owner);
  return shelf == shelves_.end() ? nullptr : with_id(shelf->second.jobs, id);
}

std::vector<BatchJobPtr> BatchStore::jobs_of(std::uint64_t owner) const {
  const auto shelf = shelves_.find(owner);
  return shelf == shelves_.end() ? std::vector<BatchJobPtr>() : shelf->second.jobs;
}

std::vector<BatchJobPtr> BatchStore::all_jobs() const {
  std::vector<BatchJobPtr> out;
  for (const auto& [owner, shelf] : shelves_) out.insert(out.end(), shelf.jobs.begin(), shelf.jobs.end());
  return out;
}

std::size_t BatchStore::open_jobs(std::uint64_t owner) const {
  const auto shelf = shelves_.find(owner);
  if (shelf == shelves_.end()) return 0;
  const auto open =
      std::ranges::count_if(shelf->second.jobs, [](const BatchJobPtr& job) { return !has_ended(job->status); });
  return static_cast<std::size_t>(open) + shelf->second.orders;
}

void BatchStore::set_status(BatchJob& job, BatchStatus status) {
  metrics_.batches[static_cast<std::size_t>(job.status)].add(-1);
  job.status = status;
  metrics_.batches[static_cast<std::size_t>(status)].add(1);
}

void BatchStore::end_job(BatchJob& job, BatchJob after) {
  set_status(job, after.status);
  job = std::move(after);
  if (const StoredFilePtr input = find_file(job.owner, job.input_file)) --input->users;
}

net::Awaitable<Result<void>> BatchStore::save(BatchJob& job) {
  auto work = [folder = folder_, id = job.id, text = job_text(job)] { return folder->put(job_name(id), text); };
  const Result<void> saved = co_await run(std::move(work));
  if (saved) co_return Result<void>();
  metrics_.write_failures.add();
  co_return disk_error(saved.error(), "the batch");
}

net::Awaitable<void> BatchStore::settle(BatchJobPtr job, std::uint64_t results_bytes) {
  charge_results(job->owner, -static_cast<std::int64_t>(results_bytes));
  auto work = [folder = folder_, id = job->id] { return folder->remove(results_name(id)); };
  const Result<void> removed = co_await run(std::move(work));
  if (!removed) log_error("results of a batch could not be removed", {{"batch", job->id}});
}

net::Awaitable<void> BatchStore::forget_job(BatchJobPtr job) {
  if (std::erase(shelves_[job->owner].jobs, job) == 0) co_return;
  metrics_.batches[static_cast<std::size_t>(job->status)].add(-1);
  auto work = [folder = folder_, id = job->id] { return folder->remove(job_name(id)); };
  const Result<void> removed = co_await run(std::move(work));
  if (!removed) log_error("a batch could not be removed", {{"batch", job->id}});
}

// A tenant whose key is away for a while keeps what it has; one that is gone would fill the disk for good.
bool BatchStore::is_abandoned(Shelf& shelf, bool known, std::int64_t now) {
  if (known) {
    shelf.unknown_since = 0;
  } else if (shelf.unknown_since == 0) {
    shelf.unknown_since = now;
  }
  return shelf.unknown_since != 0 && shelf.unknown_since + kKeptSeconds <= now;
}

net::Awaitable<void> BatchStore::forget_old(std::function<bool(std::uint64_t owner)> known) {
  const std::int64_t now = clock_.unix_seconds();
  std::vector<StoredFilePtr> files;
  std::vector<BatchJobPtr> jobs;
  for (auto& [owner, shelf] : shelves_) {
    const bool abandoned = is_abandoned(shelf, known(owner), now);
    for (const StoredFilePtr& file : shelf.files) {
      const bool over = abandoned || (file->expires != 0 && file->expires <= now);
      if (over && file->users == 0) files.push_back(file);
    }
    for (const BatchJobPtr& job : shelf.jobs) {
      const bool over = abandoned || job->ended + kKeptSeconds <= now;
      if (has_ended(job->status) && over) jobs.push_back(job);
    }
  }
  for (StoredFilePtr& file : files) {
    if (file->users > 0) continue;
    const Result<void> removed = co_await remove_file(file);
    if (!removed) log_error("a file could not be removed", {{"file", file->id}, {"reason", removed.error().message}});
  }
  for (BatchJobPtr& job : jobs) co_await forget_job(job);
}

}  // namespace chasqui
