// What the thread of the queue does each time: carries out what the loop has ordered, keeps alive what this node runs,
// takes lines and results. Owned by app/queue_thread, one thread; the loop and it exchange QueueOrders and QueueNews.
//
// What the broker has not taken is tried again at the next turn, but for lines that are to be published: the loop hears
// of those, and decides again. A broker that answers but refuses what it would have to keep is not down: what it has is
// taken and acknowledged all the same, which may make room.
//
// A line that was delivered before is taken for one that its node has not survived, unless the broker was down: then no
// node could report, and the line goes back, with what was counted of it before. bounded: the loop says how many lines
// it holds, and of results that are not acknowledged yet no more than kResultsOpen, of kResultBytesOpen, are handed to
// it: the others stay at the broker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jobs/line_queue.h"
#include "jobs/queue_metrics.h"

namespace chasqui {

struct QueueOrders {
  std::uint64_t number = 0;             // of the newest that is in it
  std::vector<LinePost> publish{};      // … with messages
  std::vector<LineKey> withdraw{};      // lines of this home
  std::vector<LinePost> acknowledge{};  // results
  std::vector<LinePost> answers{};      // with messages: of lines that this node has run
  std::vector<LinePost> returns{};      // with messages: for other nodes
  std::vector<LinePost> drops{};
  std::optional<std::size_t> capacity{};  // lines that this node may hold, with those it has

  // What was ordered later.
  void add(QueueOrders later);
};

struct TakenLine {
  std::string receipt;
  SharedLine line;
};

struct ArrivedResult {
  std::string receipt;
  SharedResult result;
};

struct UnsentLine {
  LineKey key;
  bool too_large = false;  // it will never go; else the broker does not answer
};

struct QueueNews {
  bool up = false;           // the broker answers
  std::string refusal{};     // why it did not keep what was sent although it answers; empty: nothing was refused
  bool takes_again = false;  // it has kept lines, the first since a refusal
  std::vector<TakenLine> lines{};
  std::vector<std::string> lost{};  // receipts: another node may run them, or they are withdrawn
  std::vector<ArrivedResult> results{};
  std::vector<UnsentLine> unsent{};
  struct Outstanding {
    std::uint64_t orders = 0;  // the newest that were carried out before
    std::vector<LineKey> keys{};
  };
  std::optional<Outstanding> outstanding{};

  bool says_something() const {
    return !refusal.empty() || takes_again || !lines.empty() || !lost.empty() || !results.empty() || !unsent.empty() ||
           outstanding.has_value();
  }
};

class QueueTurn {
 public:
  static constexpr Duration kKeepEvery = std::chrono::seconds(5);
  static constexpr Duration kLookEvery = std::chrono::seconds(5);
  static constexpr std::size_t kResultsOpen = 512;
  static constexpr std::size_t kResultBytesOpen = std::size_t{64} << 20;
  // A shorter outage makes no node late, which reports every kKeepEvery …
  static constexpr Duration kOutage = kQueueIdle / 3;
  // … and of a longer one the broker sees so long who was late.
  static constexpr Duration kAfterOutage = kQueueIdle + kKeepEvery;

  // All outlive it. `home` names this node.
  QueueTurn(LineQueue& queue, std::string home, const Clock& clock, QueueMetrics& metrics);
  QueueTurn(const QueueTurn&) = delete;
  QueueTurn& operator=(const QueueTurn&) = delete;

  // One turn. `up` of the news is how it went.
  QueueNews run(QueueOrders orders);
  // The last one: what is ordered, and nothing is taken.
  void finish(QueueOrders orders);

  bool is_busy() const { return busy_; }  // there may be more at once
  bool holds_lines() const { return !held_.empty(); }

 private:
  Result<void> open();
  Result<void> carry_out();
  Result<void> send(QueueNews& news);
  Result<void> publish(QueueNews& news);
  Result<void> send_answers();
  Result<void> send_back();
  Result<void> look(QueueNews& news);
  Result<void> keep(QueueNews& news);
  Result<void> take_lines(QueueNews& news);
  bool goes_back(SharedLine& line, const std::string& receipt, std::uint64_t again);
  Result<void> take_results(QueueNews& news);
  Result<void> take_all(QueueNews& news);
  void count_result(const std::string& receipt, std::size_t bytes);
  void tell_state(const Result<void>& went);

  LineQueue& queue_;
  const std::string home_;
  const Clock& clock_;
  QueueMetrics& metrics_;
  QueueOrders pending_;
  std::map<std::string, LinePost> held_;  // by receipt
  std::size_t capacity_ = 0;
  std::map<std::string, std::size_t> results_open_;  // their bytes, by receipt
  std::size_t result_bytes_ = 0;
  TimePoint keep_at_{};
  TimePoint look_at_{};
  TimePoint went_at_{};        // the end of the last turn that went
  TimePoint excused_until_{};  // late nodes are
  bool open_ = false;
  bool busy_ = false;
  bool refused_ = false;      // since lines were kept
  std::optional<bool> up_{};  // none: not known yet
};

}  // namespace chasqui
