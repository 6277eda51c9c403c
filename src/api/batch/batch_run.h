// A batch that is being run: what is known of it beyond what is on disk. Owned by the coroutine of the BatchRunner that
// leads it, and those of its lines; loop thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/batch/batch_job.h"
#include "api/batch/batch_results.h"
#include "api/batch/line_exchange.h"
#include "base/clock.h"
#include "jobs/queue_turn.h"
#include "net/event_signal.h"

namespace chasqui {

// A line that is in the queue of --batch-queue.
struct AwayLine {
  WaitingLine line;          // without its body
  std::size_t bytes = 0;     // of its body
  std::uint64_t orders = 0;  // those that sent it
  std::size_t missed = 0;    // looks at the queue, one after the other, that have not found it
};

struct BatchRun {
  BatchRun(BatchJobPtr made, net::EventLoop& loop) : job(std::move(made)), signal(loop), try_write(loop) {}

  const BatchJobPtr job;
  net::EventSignal signal;     // for the coroutine that leads the batch: something has changed
  net::EventSignal try_write;  // … that writes results, while a write has failed
  std::shared_ptr<const OpenFile> input;

  // Lines, in the order of the file: those done by an earlier process are skipped.
  std::shared_ptr<const std::vector<bool>> done_before;
  LinePlace next;
  bool at_end = false;  // of the input file
  std::deque<WaitingLine> ready;
  std::deque<WaitingLine> again;  // without their bodies, which are read once more
  bool reading = false;
  TimePoint paused_until{};
  Duration pause{};  // the last one, since a line was answered

  std::size_t lines = 0;            // that run, or are about to
  std::set<LineExchange*> running;  // those that can be stopped
  std::vector<AnsweredLine> unwritten;
  std::size_t answered = 0;  // on disk
  std::uint64_t results_bytes = 0;
  bool writing = false;
  bool write_fails = false;
  bool stopping = false;  // no line begins

  // With --batch-queue, by the number of the line.
  std::map<std::uint32_t, AwayLine> away;
  std::map<std::uint32_t, ArrivedResult> early;  // of lines that are to begin: from before a restart, or called back
  std::vector<bool> settled;                     // answered, on disk or about to be
  std::set<std::string> unknown_models;          // that no node knows: their lines run here
  bool entered = false;                          // it is known which lines are answered

  bool is_settled(std::uint32_t number) const { return number < settled.size() && settled[number]; }
  void settle(std::uint32_t number) {
    if (number >= settled.size()) settled.resize(number + 1);
    settled[number] = true;
  }

  bool is_quiet() const { return lines == 0 && !writing && !reading; }
  bool has_more() const { return !ready.empty() || !at_end || !again.empty(); }
  bool wants_to_read() const { return !stopping && !reading && ready.size() < kLow && (!at_end || !again.empty()); }

 private:
  static constexpr std::size_t kLow = 16;
};

using BatchRunPtr = std::shared_ptr<BatchRun>;

}  // namespace chasqui
