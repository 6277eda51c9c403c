// The lines of batches that are in the queue of --batch-queue: which go there, and how what comes back is used.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "api/batch/batch_runner.h"
#include "base/limits.h"
#include "base/log.h"

namespace chasqui {
namespace {

// Looks at the queue, one after the other, that have not found a line and no result either.
constexpr std::size_t kMissedMost = 2;
constexpr std::size_t kUnknownModelsMost = 16;

}  // namespace

void BatchRunner::share(QueuePort& port, std::string home, QueueMetrics& metrics, LineShare::Pauses pauses) {
  LineShare::Host sharing;
  sharing.alone = [this] { call_all_back(); };
  sharing.changed = [this] { pump(); };
  share_.emplace(port, std::move(home), metrics, loop_, pauses, std::move(sharing));
  ForeignLines::Host host;
  host.launch = [this](net::Awaitable<void> work, std::string_view name) { launch(std::move(work), name); };
  host.may_begin = [this](std::uint64_t owner) {
    const auto turn = turns_.find(owner);
    return !takes_none_ && may_run_here(owner, turn == turns_.end() ? nullptr : &turn->second);
  };
  host.changed = [this] { pump(); };
  foreign_.emplace(frontend_, handler_, *share_, std::move(host));
}

void BatchRunner::hold() {
  held_ = true;
  if (!share_) return;
  foreign_->give_back_waiting();
  pump_share();
}

void BatchRunner::take_none(bool none) {
  takes_none_ = none;
  if (none && foreign_) foreign_->give_back_waiting();
  pump();
}

void BatchRunner::hear(QueueNews news) {
  share_->hear(news);
  foreign_->lose(news.lost);
  for (ArrivedResult& arrived : news.results) take_result(std::move(arrived));
  for (const UnsentLine& unsent : news.unsent) take_unsent(unsent);
  if (news.outstanding) compare(*news.outstanding);
  if (held_ || takes_none_) {
    foreign_->take(std::move(news.lines));
    foreign_->give_back_waiting();
  } else if (!news.lines.empty()) {
    foreign_->take(std::move(news.lines));
  }
  pump();
}

bool BatchRunner::goes_away(const BatchRun& run, const WaitingLine& line) const {
  if (!share_ || !share_->wants_lines()) return false;
  return !line.here && line.fault.empty() && !run.unknown_models.contains(line.line.model);
}

bool BatchRunner::has_room(const Turn& turn, const BatchRun& run) const {
  const WaitingLine& line = run.ready.front();
  if (run.early.contains(line.place.number)) return true;
  return goes_away(run, line) ? share_->has_room() : may_run_here(run.job->owner, &turn);
}

bool BatchRunner::may_run_here(std::uint64_t owner, const Turn* turn) const {
  const std::size_t foreign = foreign_ ? foreign_->running() : 0;
  if (held_ || running_ + foreign >= lines_max_()) return false;
  const std::size_t running = (turn != nullptr ? turn->running : 0) + (foreign_ ? foreign_->running_of(owner) : 0);
  return running < (turn != nullptr ? turn->running_max : lines_of(owner));
}

// Lines of other nodes, and how many more of them.
void BatchRunner::pump_share() {
  if (!held_) foreign_->pump();
  const TimePoint now = loop_.now();
  const TimePoint paused_until = foreign_->paused_until();
  const bool paused = paused_until > now;
  if (paused && !held_) wake_at(paused_until);
  const TimePoint next = foreign_->next_time();
  if (next != kNever && !held_) wake_at(std::max(next, now + milliseconds(1)));
  const std::size_t most = lines_max_();
  std::size_t here = running_;
  for (const auto& [owner, turn] : turns_) {
    // One that has to run here gets the next place.
    here += static_cast<std::size_t>(std::ranges::any_of(turn.runs, [this](const BatchRunPtr& run) {
      return !run->stopping && !run->ready.empty() && !goes_away(*run, run->ready.front());
    }));
  }
  const bool takes = !held_ && !takes_none_ && !paused && !store_.is_full();
  share_->set_capacity(takes ? most - std::min(most, here) : 0);
}

void BatchRunner::send_away(const BatchRunPtr& run, WaitingLine line) {
  const BatchJob& job = *run->job;
  SharedLine shared;
  shared.home = share_->home();
  shared.key = {job.id, line.place.number};
  shared.endpoint = job.endpoint;
  shared.owner = job.owner;
  shared.expires = job.expires;
  shared.body = std::exchange(line.line.body, {});
  share_->orders().publish.push_back({shared.home, shared.key, write_message(shared), {}});
  line.sent = true;
  const std::uint32_t number = line.place.number;
  run->away.insert_or_assign(number, AwayLine{std::move(line), shared.body.size(), share_->number(), 0});
  share_->went(shared.body.size());
  ++turns_.at(job.owner).away;
}

WaitingLine BatchRunner::take_away(BatchRun& run, std::map<std::uint32_t, AwayLine>::iterator at) {
  WaitingLine line = std::move(at->second.line);
  share_->came(at->second.bytes);
  --turns_.at(run.job->owner).away;
  run.away.erase(at);
  return line;
}

// It is run here, or sent again.
void BatchRunner::call_back(BatchRun& run, std::map<std::uint32_t, AwayLine>::iterator at) {
  share_->metrics().recalled.add();
  put_back(run, take_away(run, at), Duration::zero());
}

void BatchRunner::call_all_back() {
  for (const auto& [id, run] : runs_) {
    while (!run->away.empty() && !run->stopping) call_back(*run, run->away.begin());
  }
  pump();
}

// The batch ends here. Once the process leaves, its lines stay in the queue.
void BatchRunner::forget_away(BatchRun& run) {
  for (const auto& [number, away] : run.away) {
    share_->came(away.bytes);
    if (!leaving_) share_->orders().withdraw.push_back({run.job->id, number});
  }
  run.away.clear();
}

void BatchRunner::forget_early(BatchRun& run) {
  for (const auto& [number, arrived] : run.early) drop_result(arrived);
  run.early.clear();
}

void BatchRunner::drop_result(const ArrivedResult& arrived) {
  share_->metrics().duplicates.add();
  share_->acknowledge(arrived.receipt, arrived.result.key);
}

void BatchRunner::take_result(ArrivedResult arrived) {
  const LineKey& key = arrived.result.key;
  const auto found = runs_.find(key.batch);
  if (found == runs_.end()) {
    if (!leaving_) drop_result(arrived);
    return;
  }
  const BatchRunPtr run = found->second;
  if (leaving_) return;  // it comes again at the next start
  const auto away = run->away.find(key.line);
  if (run->is_settled(key.line) || run->stopping || run->early.contains(key.line)) return drop_result(arrived);
  if (away != run->away.end()) return use_result(run, take_away(*run, away), std::move(arrived));
  run->early.emplace(key.line, std::move(arrived));
}

void BatchRunner::use_result(const BatchRunPtr& run, WaitingLine line, ArrivedResult arrived) {
  SharedResult& result = arrived.result;
  share_->metrics().results.add();
  if (result.end == LineEnd::refused) {
    line.here = true;
    const bool is_unknown = result.status != kResultTooLarge && run->unknown_models.size() < kUnknownModelsMost;
    if (is_unknown) run->unknown_models.insert(line.line.model);
    share_->acknowledge(arrived.receipt, result.key);
    return put_back(*run, std::move(line), Duration::zero());
  }
  AnsweredLine answer{
      result.key.line,           {}, std::move(result.request_id), result.status, std::move(result.body),
      std::move(arrived.receipt)};
  const std::string receipt = answer.receipt;
  const std::uint32_t number = answer.number;
  take_answer(run, std::move(line), std::move(answer), Duration::zero(), result.end == LineEnd::answered);
  if (!run->is_settled(number)) share_->acknowledge(receipt, {run->job->id, number});  // it is sent again
}

void BatchRunner::take_unsent(const UnsentLine& unsent) {
  const auto found = runs_.find(unsent.key.batch);
  if (found == runs_.end()) return;
  BatchRun& run = *found->second;
  const auto away = run.away.find(unsent.key.line);
  if (away == run.away.end() || run.stopping) return;
  away->second.line.here = away->second.line.here || unsent.too_large;
  call_back(run, away);
}

// Lines that the broker has lost are sent again, and those that are of no use any more are withdrawn.
void BatchRunner::compare(const QueueNews::Outstanding& found) {
  const std::set<LineKey> there(found.keys.begin(), found.keys.end());
  for (const auto& [id, run] : runs_) {
    if (run->stopping) continue;
    for (auto at = run->away.begin(); at != run->away.end();) {
      const auto next = std::next(at);
      AwayLine& away = at->second;
      const LineKey key{id, at->first};
      away.missed = away.orders > found.orders || there.contains(key) ? 0 : away.missed + 1;
      if (away.missed >= kMissedMost) {
        share_->orders().withdraw.push_back(key);
        call_back(*run, at);
      }
      at = next;
    }
  }
  if (leaving_) return;
  for (const LineKey& key : found.keys) {
    const auto run = runs_.find(key.batch);
    const bool wanted = run != runs_.end() && !run->second->is_settled(key.line);
    if (!wanted) share_->orders().withdraw.push_back(key);
  }
}

}  // namespace chasqui
