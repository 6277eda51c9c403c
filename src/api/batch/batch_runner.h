// Runs batches: checks their files, runs their lines as requests of class background, writes what is answered, and at
// the end the files of results. Each line goes through the handler of its route, as if its tenant had sent it. Owned by
// the application; loop thread.
//
// A line is answered once its result is on disk; until then an end of the process makes it run again. Lines that the
// server refuses because it is busy are put back, and their batch pauses.
//
// bounded: so many lines run at once as there are slots, or as the operator says; of one tenant half of what it may
// have in flight. Of each batch a few lines are read ahead. While results cannot be written no further lines begin, and
// none of a tenant that has its share of the folder beside others.
//
// With --batch-queue lines go into the queue that nodes share (LineShare), this node runs lines of the queue
// (ForeignLines), whichever node they are from, and results that come back are written as all others. While the queue
// does not answer, or takes none, lines run here. Whatever comes twice is dropped: a line is settled once.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/batch/batch_run.h"
#include "api/batch/batch_store.h"
#include "api/batch/foreign_lines.h"
#include "api/batch/line_share.h"
#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "net/event_loop.h"

namespace chasqui {

class BatchRunner {
 public:
  // All outlive it. `lines_max` says how many lines may run now.
  BatchRunner(BatchStore& store, const Frontend& frontend, std::function<std::size_t()> lines_max, LineHandler handler);
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  // Before begin(): lines go through this queue, in which this node is called `home`. All outlive it.
  void share(QueuePort& port, std::string home, QueueMetrics& metrics, LineShare::Pauses pauses = {});
  void hear(QueueNews news);

  // Once the server is open: goes on with the batches of an earlier process.
  void begin();
  void add(BatchJobPtr job);
  // REQUIRES: its status is cancelling
  void cancel(const BatchJobPtr& job);

  // No line begins from now on.
  void hold();
  // Takes no lines of the queue; those that it has taken and not begun go back. Until it is called with false.
  void take_none(bool none);
  // Lines that run have until `deadline`; what is not answered by then runs at the next start. `done` runs once nothing
  // is left, also after a second call, which may move the deadline.
  void drain(TimePoint deadline, std::function<void()> done);

 private:
  // The batches of one tenant, in the order in which they were made.
  struct Turn {
    std::vector<BatchRunPtr> runs;
    std::size_t running = 0;
    std::size_t away = 0;         // in the queue
    std::size_t running_max = 0;  // 0: there is no key for it
    std::uint64_t served = 0;     // when a line of it began, in the order of all
  };
  // Of a line that runs, and of a coroutine: what is counted is so until it goes.
  class Place;
  class Task;

  void launch(net::Awaitable<void> work, std::string_view name);
  net::Awaitable<void> counted(net::Awaitable<void> work);
  void task_ended();

  net::Awaitable<void> lead(BatchRunPtr run);
  net::Awaitable<bool> check(BatchRunPtr run);
  net::Awaitable<bool> recover(BatchRunPtr run);
  net::Awaitable<bool> answer_lines(BatchRunPtr run);
  net::Awaitable<void> finish(BatchRunPtr run);
  net::Awaitable<void> fail(BatchRunPtr run);
  void enter(const BatchRunPtr& run);
  void leave(const BatchRunPtr& run);
  net::Awaitable<bool> save_surely(BatchRunPtr run);
  net::Awaitable<bool> end_surely(BatchRunPtr run, BatchJob after);
  net::Awaitable<bool> wait_to_try(BatchRunPtr run, Error error);
  bool may_pass(const BatchJob& job, const Error& error) const;
  bool choose_end(BatchRun& run) const;
  StoredFile result_file(const BatchJob& job, const std::string& id, std::string_view suffix);

  void pump();
  bool start_next();
  BatchRunPtr startable(std::uint64_t owner, const Turn& turn, TimePoint now) const;
  std::size_t lines_of(std::uint64_t owner) const;
  void wake_at(TimePoint time);
  net::Awaitable<void> read_more(BatchRunPtr run);
  net::Awaitable<void> run_line(BatchRunPtr run, WaitingLine line);
  void take_outcome(BatchRunPtr run, WaitingLine line, LineExchange& exchange, const std::string& request_id);
  void take_answer(BatchRunPtr run, WaitingLine line, AnsweredLine answer, Duration busy_for, bool tries_again);
  void put_back(BatchRun& run, WaitingLine line, Duration pause);
  void write_later(BatchRunPtr run, AnsweredLine line);
  net::Awaitable<void> write_results(BatchRunPtr run);
  void take_written(BatchRun& run, const std::vector<AnsweredLine>& lines);
  net::Awaitable<void> sweep();
  void stop_lines();

  bool goes_away(const BatchRun& run, const WaitingLine& line) const;
  bool has_room(const Turn& turn, const BatchRun& run) const;
  bool may_run_here(std::uint64_t owner, const Turn* turn) const;
  void send_away(const BatchRunPtr& run, WaitingLine line);
  WaitingLine take_away(BatchRun& run, std::map<std::uint32_t, AwayLine>::iterator at);
  void call_back(BatchRun& run, std::map<std::uint32_t, AwayLine>::iterator at);
  void call_all_back();
  void forget_away(BatchRun& run);
  void forget_early(BatchRun& run);
  void take_result(ArrivedResult arrived);
  void use_result(const BatchRunPtr& run, WaitingLine line, ArrivedResult arrived);
  void take_unsent(const UnsentLine& unsent);
  void compare(const QueueNews::Outstanding& found);
  void drop_result(const ArrivedResult& arrived);
  void pump_share();

  BatchStore& store_;
  const Frontend& frontend_;
  net::EventLoop& loop_;
  const std::function<std::size_t()> lines_max_;
  const LineHandler handler_;
  std::map<std::uint64_t, Turn> turns_;      // by the tenant's lasting name: batches whose lines run
  std::map<std::string, BatchRunPtr> runs_;  // all that have not ended, by id
  std::size_t running_ = 0;
  std::uint64_t served_ = 0;
  net::Timer wake_;
  TimePoint wakes_at_ = kNever;
  net::Timer deadline_;
  net::EventSignal leave_;  // for sweep()
  std::size_t tasks_ = 0;
  std::optional<LineShare> share_;  // none: there is no queue
  std::optional<ForeignLines> foreign_;
  bool takes_none_ = false;
  bool held_ = false;
  bool leaving_ = false;
  std::function<void()> drained_;
};

}  // namespace chasqui
