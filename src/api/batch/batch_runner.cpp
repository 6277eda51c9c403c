#include "api/batch/batch_runner.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace chasqui {
namespace {

constexpr Duration kTryDisk = seconds(1);
constexpr Duration kSweepEvery = seconds(30);

struct Recovered {
  std::shared_ptr<const OpenFile> input;
  FoundResults results;
};

Result<CheckedLines> check_file(const JobFolder& folder, const std::string& file_id, const std::string& endpoint) {
  const auto file = folder.open_file(bytes_name(file_id));
  if (!file) return file.error();
  return check_lines(*file, endpoint);
}

Result<Recovered> recover_results(JobFolder& folder, const std::string& job, const std::string& file_id) {
  auto file = folder.open_file(bytes_name(file_id));
  if (!file) return file.error();
  auto results = find_results(folder, job);
  if (!results) return results.error();
  return Recovered{std::make_shared<const OpenFile>(std::move(*file)), std::move(*results)};
}

LineFault fault_of(const Error& error) {
  if (error.code == ErrorCode::not_found) {
    return {"input_file_missing", "the input file is no longer in the folder of --batch-dir", "input_file_id", 0};
  }
  return {"batch_unreadable", "the files of the batch cannot be read: " + error.message, "", 0};
}

// With what is said of each file, whose bytes are known only now.
Result<WrittenFiles> write_ends(JobFolder& folder, const BatchJob& job, StoredFile output, StoredFile errors) {
  const auto written = write_result_files(folder, job);
  if (!written) return written;
  output.bytes = written->output_bytes;
  errors.bytes = written->error_bytes;
  for (const StoredFile* const file : {&output, &errors}) {
    if (file->bytes == 0) continue;
    if (auto put = folder.put(meta_name(file->id), file_meta(*file)); !put) return put.error();
  }
  return written;
}

}  // namespace

class BatchRunner::Task {
 public:
  explicit Task(BatchRunner& runner) : runner_(runner) {}
  ~Task() { runner_.task_ended(); }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

 private:
  BatchRunner& runner_;
};

BatchRunner::BatchRunner(BatchStore& store, const Frontend& frontend, std::function<std::size_t()> lines_max,
                         LineHandler handler)
    : store_(store),
      frontend_(frontend),
      loop_(frontend.loop),
      lines_max_(std::move(lines_max)),
      handler_(std::move(handler)),
      wake_(loop_.executor()),
      deadline_(loop_.executor()),
      leave_(loop_) {
  store_.on_room([this] { pump(); });
}

void BatchRunner::begin() {
  for (const BatchJobPtr& job : store_.all_jobs()) {
    if (!has_ended(job->status)) add(job);
  }
  launch(sweep(), "batch sweep");
  if (share_) share_->begin();
  pump();
}

void BatchRunner::add(BatchJobPtr job) {
  if (leaving_) return;  // it runs at the next start
  const auto run = std::make_shared<BatchRun>(std::move(job), loop_);
  runs_.emplace(run->job->id, run);
  launch(lead(run), "batch");
}

void BatchRunner::cancel(const BatchJobPtr& job) {
  const auto found = runs_.find(job->id);
  if (found != runs_.end()) found->second->signal.notify();
}

void BatchRunner::launch(net::Awaitable<void> work, std::string_view name) {
  ++tasks_;
  loop_.spawn(counted(std::move(work)), name);
}

net::Awaitable<void> BatchRunner::counted(net::Awaitable<void> work) {
  const Task task(*this);
  co_await std::move(work);
}

void BatchRunner::task_ended() {
  --tasks_;
  if (leaving_ && tasks_ == 0 && drained_) loop_.post(drained_);
}

void BatchRunner::drain(TimePoint deadline, std::function<void()> done) {
  hold();
  leaving_ = true;
  drained_ = std::move(done);
  leave_.notify();
  for (const auto& [id, run] : runs_) {
    run->signal.notify();
    run->try_write.notify();
  }
  if (tasks_ == 0) return loop_.post(drained_);
  deadline_.expires_at(deadline);
  deadline_.async_wait([this](net::SystemError error) {
    if (!error) stop_lines();
  });
}

void BatchRunner::stop_lines() {
  for (const auto& [id, run] : runs_) {
    run->stopping = true;
    const std::set<LineExchange*> running = run->running;
    for (LineExchange* const exchange : running) exchange->stop();
  }
  if (foreign_) foreign_->stop();
}

// From any state that it was left in. What returns false leaves the rest to the next start of the process.
net::Awaitable<void> BatchRunner::lead(BatchRunPtr run) {
  const BatchJob& job = *run->job;
  bool goes_on = true;
  if (job.counts.total == 0) goes_on = co_await check(run);
  if (goes_on && job.status != BatchStatus::finalizing) {
    goes_on = co_await recover(run);
    if (goes_on) goes_on = co_await answer_lines(run);
  }
  if (goes_on) co_await finish(run);
  if (!leaving_) forget_early(*run);
  runs_.erase(job.id);
}

net::Awaitable<bool> BatchRunner::wait_to_try(BatchRunPtr run, Error error) {
  log_error("a batch waits for the disk", {{"batch", run->job->id}, {"reason", error.message}});
  if (leaving_) co_return false;
  co_await run->signal.wait_until(loop_.now() + kTryDisk);
  co_return !leaving_;
}

net::Awaitable<bool> BatchRunner::save_surely(BatchRunPtr run) {
  for (;;) {
    const Result<void> saved = co_await store_.save(*run->job);
    if (saved) co_return true;
    const bool again = co_await wait_to_try(run, saved.error());
    if (!again) co_return false;
  }
}

// Clients are told of the end once it is on disk.
net::Awaitable<bool> BatchRunner::end_surely(BatchRunPtr run, BatchJob after) {
  for (;;) {
    const Result<void> saved = co_await store_.save(after);
    if (saved) break;
    const bool again = co_await wait_to_try(run, saved.error());
    if (!again) co_return false;
  }
  store_.end_job(*run->job, std::move(after));
  co_return true;
}

net::Awaitable<bool> BatchRunner::check(BatchRunPtr run) {
  BatchJob& job = *run->job;
  for (;;) {
    auto work = [folder = store_.folder(), file = job.input_file, endpoint = job.endpoint] {
      return check_file(*folder, file, endpoint);
    };
    Result<CheckedLines> checked = co_await store_.run(std::move(work));
    if (!checked && may_pass(job, checked.error())) {
      const bool again = co_await wait_to_try(run, checked.error());
      if (!again) co_return false;
      continue;
    }
    if (!checked) job.faults = {fault_of(checked.error())};
    if (checked) job.faults = std::move(checked->faults);
    if (checked && job.faults.empty()) job.counts.total = checked->lines;
    break;
  }
  if (!job.faults.empty()) {
    co_await fail(run);
    co_return false;
  }
  if (job.status == BatchStatus::validating) {
    job.in_progress = store_.clock().unix_seconds();
    store_.set_status(job, BatchStatus::in_progress);
  }
  const bool saved = co_await save_surely(run);
  co_return saved;
}

net::Awaitable<void> BatchRunner::fail(BatchRunPtr run) {
  BatchJob after = *run->job;
  after.ended = store_.clock().unix_seconds();
  after.status = BatchStatus::failed;
  log_info("batch failed", {{"batch", after.id}, {"reason", after.faults.front().message}});
  const bool saved = co_await end_surely(run, std::move(after));
  if (saved) co_await store_.settle(run->job, 0);
}

net::Awaitable<bool> BatchRunner::recover(BatchRunPtr run) {
  BatchJob& job = *run->job;
  for (;;) {
    auto work = [folder = store_.folder(), id = job.id, file = job.input_file] {
      return recover_results(*folder, id, file);
    };
    Result<Recovered> found = co_await store_.run(std::move(work));
    if (found) {
      run->input = std::move(found->input);
      FoundResults& results = found->results;
      job.counts.completed = results.counts.completed;
      job.counts.failed = results.counts.failed;
      run->answered = job.counts.completed + job.counts.failed;
      run->results_bytes = results.bytes;
      store_.charge_results(job.owner, static_cast<std::int64_t>(results.bytes));
      run->settled = results.done;
      run->done_before = std::make_shared<const std::vector<bool>>(std::move(results.done));
      co_return true;
    }
    if (!may_pass(job, found.error())) {
      job.faults = {fault_of(found.error())};
      co_await fail(run);
      co_return false;
    }
    const bool again = co_await wait_to_try(run, found.error());
    if (!again) co_return false;
  }
}

// A disk that fails may work again; the batch waits for it until it expires or is cancelled.
bool BatchRunner::may_pass(const BatchJob& job, const Error& error) const {
  const bool stays = error.code == ErrorCode::not_found || error.code == ErrorCode::invalid_request ||
                     error.code == ErrorCode::internal;
  return !stays && job.status != BatchStatus::cancelling && store_.clock().unix_seconds() < job.expires;
}

// False: it has not ended.
bool BatchRunner::choose_end(BatchRun& run) const {
  BatchJob& job = *run.job;
  if (job.status == BatchStatus::cancelling) {
    job.end = BatchStatus::cancelled;
  } else if (run.answered >= job.counts.total) {
    job.end = BatchStatus::completed;
  } else if (store_.clock().unix_seconds() >= job.expires) {
    job.end = BatchStatus::expired;
  } else {
    return false;
  }
  return true;
}

void BatchRunner::enter(const BatchRunPtr& run) {
  const std::uint64_t owner = run->job->owner;
  Turn& turn = turns_[owner];
  turn.runs.push_back(run);
  std::ranges::sort(turn.runs, {}, [](const BatchRunPtr& one) { return one->job->serial; });
  turn.running_max = lines_of(owner);
  store_.metrics().lines_waiting.add(static_cast<std::int64_t>(run->job->counts.total - run->answered));
  run->entered = true;
  std::erase_if(run->early, [&](const auto& each) {
    if (!run->is_settled(each.first)) return false;
    drop_result(each.second);
    return true;
  });
  pump();
}

void BatchRunner::leave(const BatchRunPtr& run) {
  store_.metrics().lines_waiting.add(-static_cast<std::int64_t>(run->job->counts.total - run->answered));
  run->entered = false;
  const auto turn = turns_.find(run->job->owner);
  turn->second.away -= run->away.size();
  forget_away(*run);
  std::erase(turn->second.runs, run);
  if (turn->second.runs.empty()) turns_.erase(turn);
  pump();
}

net::Awaitable<bool> BatchRunner::answer_lines(BatchRunPtr run) {
  const BatchJob& job = *run->job;
  enter(run);
  bool ends = choose_end(*run);
  while (!ends && !leaving_) {
    const seconds left(std::max<std::int64_t>(1, job.expires - store_.clock().unix_seconds()));
    co_await run->signal.wait_until(loop_.now() + left);
    ends = choose_end(*run);
  }
  // At the end of the process lines that run may end as they will.
  run->stopping = true;
  if (!leaving_) {
    const std::set<LineExchange*> running = run->running;
    for (LineExchange* const exchange : running) exchange->stop();
  }
  while (!run->is_quiet() || (!run->unwritten.empty() && !leaving_)) co_await run->signal.wait();
  leave(run);
  // Lines may have been answered since, or the batch cancelled; the clock may have been set back.
  ends = choose_end(*run) || ends;
  co_return ends && !leaving_;
}

StoredFile BatchRunner::result_file(const BatchJob& job, const std::string& id, std::string_view suffix) {
  StoredFile file;
  file.id = id;
  file.owner = job.owner;
  file.serial = store_.next_serial();
  file.filename = job.id + std::string(suffix) + ".jsonl";
  file.purpose = "batch_output";
  file.created = store_.clock().unix_seconds();
  file.expires =
      file.created + (job.output_seconds != 0 ? job.output_seconds : kCountLimit<"batch_keep_seconds"> / 1000);
  return file;
}

net::Awaitable<void> BatchRunner::finish(BatchRunPtr run) {
  BatchJob& job = *run->job;
  if (job.status != BatchStatus::cancelling) store_.set_status(job, BatchStatus::finalizing);
  job.finalizing = store_.clock().unix_seconds();
  bool goes_on = co_await save_surely(run);
  StoredFile output = result_file(job, job.output_file, "_output");
  StoredFile errors = result_file(job, job.error_file, "_error");
  WrittenFiles written;
  while (goes_on) {
    auto work = [folder = store_.folder(), job, output, errors] { return write_ends(*folder, job, output, errors); };
    const Result<WrittenFiles> wrote = co_await store_.run(std::move(work));
    if (wrote) {
      written = *wrote;
      break;
    }
    store_.metrics().write_failures.add();
    goes_on = co_await wait_to_try(run, wrote.error());
  }
  if (!goes_on) co_return;
  output.bytes = written.output_bytes;
  errors.bytes = written.error_bytes;
  BatchJob after = job;
  after.has_output = output.bytes > 0;
  after.has_errors = errors.bytes > 0;
  if (after.has_output) store_.put_file(std::move(output));
  if (after.has_errors) store_.put_file(std::move(errors));
  Counter& left = job.end == BatchStatus::expired ? store_.metrics().expired : store_.metrics().cancelled;
  left.add(written.unanswered);
  after.ended = store_.clock().unix_seconds();
  after.status = job.end;
  log_info("batch ended", {{"batch", job.id},
                           {"status", name(after.status)},
                           {"lines", job.counts.total},
                           {"completed", job.counts.completed},
                           {"failed", job.counts.failed},
                           {"unanswered", written.unanswered}});
  goes_on = co_await end_surely(run, std::move(after));
  if (goes_on) co_await store_.settle(run->job, run->results_bytes);
}

net::Awaitable<void> BatchRunner::sweep() {
  while (!leaving_) {
    std::function<bool(std::uint64_t)> known = [this](std::uint64_t owner) {
      return frontend_.keys.tenant_of(owner).has_value();
    };
    co_await store_.forget_old(std::move(known));
    for (auto& [owner, turn] : turns_) turn.running_max = lines_of(owner);  // keys may have changed
    pump();
    co_await leave_.wait_until(loop_.now() + kSweepEvery);
  }
}

}  // namespace chasqui
