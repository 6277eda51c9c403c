#include "jobs/queue_turn.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/log.h"

namespace chasqui {
namespace {

constexpr std::size_t kLinesAtOnce = 64;
constexpr std::size_t kResultsAtOnce = 64;
// Of orders that the broker does not take; what is older is forgotten, and comes back as a duplicate.
constexpr std::size_t kPendingMost = 4096;

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <class T>
void cut(std::vector<T>& pending) {
  if (pending.size() > kPendingMost) pending.erase(pending.begin(), pending.end() - kPendingMost);
}

}  // namespace

void QueueOrders::add(QueueOrders later) {
  number = std::max(number, later.number);
  append(publish, std::move(later.publish));
  append(withdraw, std::move(later.withdraw));
  append(acknowledge, std::move(later.acknowledge));
  append(answers, std::move(later.answers));
  append(returns, std::move(later.returns));
  append(drops, std::move(later.drops));
  if (later.capacity) capacity = later.capacity;
}

QueueTurn::QueueTurn(LineQueue& queue, std::string home, const Clock& clock, QueueMetrics& metrics)
    : queue_(queue), home_(std::move(home)), clock_(clock), metrics_(metrics), went_at_(clock.now()) {
  queue_.be(home_);
}

QueueNews QueueTurn::run(QueueOrders orders) {
  for (const LinePost& result : orders.acknowledge) count_result(result.receipt, 0);
  pending_.add(std::move(orders));
  if (pending_.capacity) capacity_ = *std::exchange(pending_.capacity, std::nullopt);
  QueueNews news;
  busy_ = false;
  Result<void> went = carry_out();
  if (went) went = send(news);
  for (LinePost& line : pending_.publish) news.unsent.push_back({std::move(line.key), false});
  pending_.publish.clear();
  if (went) went = take_all(news);
  if (went) {
    went_at_ = clock_.now();
  } else {
    open_ = false;
    cut(pending_.withdraw);
    cut(pending_.acknowledge);
  }
  tell_state(went);
  news.up = went.has_value();
  metrics_.held.set(static_cast<std::int64_t>(held_.size()));
  return news;
}

void QueueTurn::finish(QueueOrders orders) {
  if (up_ == false) return;  // no other node waits for longer than it would anyway
  pending_.add(std::move(orders));
  pending_.publish.clear();
  QueueNews news;
  Result<void> went = carry_out();
  if (went) went = send(news);
  const bool told = went && news.refusal.empty();
  if (!told) log_warning("the batch queue was not told of all; other nodes wait for it", {{"queue", queue_.shown()}});
}

// One line of the log for each change.
void QueueTurn::tell_state(const Result<void>& went) {
  if (!went) metrics_.errors.add();
  metrics_.up.set(went ? 1 : 0);
  if (up_ == went.has_value()) return;
  up_ = went.has_value();
  if (went) return log_info("the batch queue answers", {{"queue", queue_.shown()}});
  log_warning("the batch queue does not answer; this node runs its batches itself until it does",
              {{"queue", queue_.shown()}, {"reason", went.error().message}});
}

Result<void> QueueTurn::open() {
  if (open_) return {};
  if (auto opened = queue_.open(); !opened) return opened;
  open_ = true;
  const TimePoint now = look_at_ = clock_.now();
  if (now - went_at_ > kOutage) excused_until_ = now + kAfterOutage;
  return {};
}

// Acknowledgements and withdrawals come before what is published: a line may be sent again.
Result<void> QueueTurn::carry_out() {
  if (auto opened = open(); !opened) return opened;
  if (!pending_.acknowledge.empty()) {
    if (auto done = queue_.acknowledge(pending_.acknowledge); !done) return done;
    pending_.acknowledge.clear();
  }
  if (!pending_.withdraw.empty()) {
    if (auto done = queue_.withdraw(pending_.withdraw); !done) return done;
    metrics_.withdrawn.add(pending_.withdraw.size());
    pending_.withdraw.clear();
  }
  return {};
}

// What the broker has to keep. Where that fails, opening the queue again says whether it is down or refuses.
Result<void> QueueTurn::send(QueueNews& news) {
  Result<void> sent = send_answers();
  if (sent) sent = send_back();
  if (sent) sent = publish(news);
  if (sent) return {};
  open_ = false;
  if (auto opened = open(); !opened) return opened;
  metrics_.errors.add();
  refused_ = true;
  news.refusal = sent.error().message;
  return {};
}

Result<void> QueueTurn::send_answers() {
  while (!pending_.answers.empty()) {
    LinePost& line = pending_.answers.back();
    auto sent = queue_.answer(line);
    if (!sent) return sent.error();
    if (*sent == Posted::too_large) {
      line.message = write_message(SharedResult{line.key, LineEnd::refused, kResultTooLarge, {}, {}});
      sent = queue_.answer(line);
      if (!sent) return sent.error();
    }
    metrics_.answered.add();
    held_.erase(line.receipt);
    pending_.answers.pop_back();
    busy_ = true;
  }
  return {};
}

Result<void> QueueTurn::send_back() {
  while (!pending_.returns.empty()) {
    const LinePost& line = pending_.returns.back();
    if (auto done = queue_.give_back(line); !done) return done;
    metrics_.given_back.add();
    held_.erase(line.receipt);
    pending_.returns.pop_back();
  }
  while (!pending_.drops.empty()) {
    const LinePost& line = pending_.drops.back();
    if (auto done = queue_.drop(line); !done) return done;
    held_.erase(line.receipt);
    pending_.drops.pop_back();
  }
  return {};
}

Result<void> QueueTurn::publish(QueueNews& news) {
  while (!pending_.publish.empty()) {
    const std::size_t count = std::min(pending_.publish.size(), kLinesAtOnce);
    const auto sent = queue_.publish(std::span(pending_.publish).first(count));
    if (!sent) return sent.error();
    for (std::size_t i = 0; i < count && i < sent->size(); ++i) {
      if ((*sent)[i] == Posted::too_large) news.unsent.push_back({std::move(pending_.publish[i].key), true});
      if ((*sent)[i] == Posted::yes) metrics_.published.add();
      if ((*sent)[i] != Posted::too_large && std::exchange(refused_, false)) news.takes_again = true;
    }
    pending_.publish.erase(pending_.publish.begin(), pending_.publish.begin() + static_cast<std::ptrdiff_t>(count));
    busy_ = true;
  }
  return {};
}

Result<void> QueueTurn::take_all(QueueNews& news) {
  if (auto done = keep(news); !done) return done;
  if (auto done = take_results(news); !done) return done;
  if (auto done = take_lines(news); !done) return done;
  return look(news);
}

Result<void> QueueTurn::keep(QueueNews& news) {
  const TimePoint now = clock_.now();
  if (held_.empty() || now < keep_at_) return {};
  keep_at_ = now + kKeepEvery;
  std::vector<LinePost> lines;
  for (const auto& [receipt, line] : held_) lines.push_back(line);
  auto lost = queue_.keep(lines);
  if (!lost) return lost.error();
  for (const std::string& receipt : *lost) held_.erase(receipt);
  append(news.lost, std::move(*lost));
  return {};
}

Result<void> QueueTurn::take_results(QueueNews& news) {
  const std::size_t room = kResultBytesOpen - std::min(kResultBytesOpen, result_bytes_);
  if (results_open_.size() >= kResultsOpen || room < kSharedResultMost) return {};
  auto arrived = queue_.results(std::min(kResultsOpen - results_open_.size(), kResultsAtOnce), room);
  if (!arrived) return arrived.error();
  busy_ = busy_ || !arrived->empty();
  for (TakenMessage& one : *arrived) {
    auto result = read_shared_result(one.message);
    if (result) {
      count_result(one.receipt, one.message.size());
      news.results.push_back({std::move(one.receipt), std::move(*result)});
      continue;
    }
    metrics_.unreadable.add();
    pending_.acknowledge.push_back({home_, {}, {}, std::move(one.receipt)});
  }
  return {};
}

// As handed over; 0: it is acknowledged. The same result may come twice.
void QueueTurn::count_result(const std::string& receipt, std::size_t bytes) {
  if (const auto found = results_open_.find(receipt); found != results_open_.end()) {
    result_bytes_ -= found->second;
    results_open_.erase(found);
  }
  if (bytes > 0) results_open_.emplace(receipt, bytes);
  result_bytes_ += bytes;
  metrics_.result_bytes.set(static_cast<std::int64_t>(result_bytes_));
}

Result<void> QueueTurn::take_lines(QueueNews& news) {
  if (held_.size() >= capacity_) return {};
  auto taken = queue_.take(capacity_ - held_.size());
  if (!taken) return taken.error();
  busy_ = busy_ || !taken->empty();
  for (TakenMessage& one : *taken) {
    if (held_.contains(one.receipt)) continue;  // was silent for too long, and is still this node's
    auto line = read_shared_line(one.message);
    if (!line) {
      metrics_.unreadable.add();
      pending_.drops.push_back({{}, {}, {}, std::move(one.receipt)});
      continue;
    }
    metrics_.taken.add();
    const std::uint64_t again = std::min<std::uint64_t>(std::max<std::uint64_t>(one.deliveries, 1) - 1, 1000);
    metrics_.redelivered.add(again);
    if (goes_back(*line, one.receipt, again)) continue;
    line->losses += static_cast<std::uint32_t>(again);
    held_[one.receipt] = {line->home, line->key, {}, one.receipt};
    news.lines.push_back({std::move(one.receipt), std::move(*line)});
  }
  return {};
}

// The next delivery of it is the first one to the broker. Where no more may wait, it is delivered again by itself.
bool QueueTurn::goes_back(SharedLine& line, const std::string& receipt, std::uint64_t again) {
  if (again == 0 || clock_.now() >= excused_until_) return false;
  line.losses += static_cast<std::uint32_t>(again - 1);
  busy_ = true;
  if (pending_.returns.size() < kPendingMost) {
    pending_.returns.push_back({line.home, line.key, write_message(line), receipt});
  }
  return true;
}

// Lines of this home that the broker has, so that the loop sends again what it has not.
Result<void> QueueTurn::look(QueueNews& news) {
  const TimePoint now = clock_.now();
  if (now < look_at_) return {};
  auto keys = queue_.outstanding();
  if (!keys) return keys.error();
  look_at_ = now + kLookEvery;
  news.outstanding = QueueNews::Outstanding{pending_.number, std::move(*keys)};
  return {};
}

}  // namespace chasqui
