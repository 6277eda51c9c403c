// The loop's end of the queue that nodes share (--batch-queue): whether the queue takes lines, how many of this node's
// own are in it, and orders for its thread, which go out together at the end of a turn of the loop. Part of the
// BatchRunner; loop thread.
//
// A broker that does not answer for longer than the patience leaves this node alone with its batches until it answers
// again. So does one that answers and takes no lines: then one line goes there after a pause, which grows, and all
// others once it is taken.
//
// bounded: kAwayLines lines of this node are in the queue, with kAwayBytes in their requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "jobs/queue_metrics.h"
#include "jobs/queue_turn.h"
#include "net/event_loop.h"

namespace chasqui {

// What carries out orders, on a thread of its own. Its news come back on the loop.
class QueuePort {
 public:
  virtual ~QueuePort() = default;
  virtual void order(QueueOrders orders) = 0;
};

class LineShare {
 public:
  static constexpr std::size_t kAwayLines = 256;
  static constexpr std::size_t kAwayBytes = std::size_t{64} << 20;

  struct Pauses {
    Duration patience = seconds(2);
    Duration soon = milliseconds(250);  // before lines that were refused are sent again
    Duration least = seconds(1);        // … once this node is alone with them
    Duration most = seconds(60);
  };

  enum class State {
    waits,   // it is not known yet whether the broker answers, and takes lines
    shares,  // lines go into the queue
    alone,   // they run here
  };

  struct Host {
    std::function<void()> alone;    // the patience is over
    std::function<void()> changed;  // a line may go
  };

  // All outlive it.
  LineShare(QueuePort& port, std::string home, QueueMetrics& metrics, net::EventLoop& loop, Pauses pauses, Host host)
      : port_(port),
        home_(std::move(home)),
        metrics_(metrics),
        loop_(loop),
        pauses_(pauses),
        host_(std::move(host)),
        timer_(loop.executor()),
        try_(loop.executor()) {}
  ~LineShare() { flush(); }
  LineShare(const LineShare&) = delete;
  LineShare& operator=(const LineShare&) = delete;

  const std::string& home() const { return home_; }
  QueueMetrics& metrics() { return metrics_; }
  State state() const { return state_; }

  void begin() { wait(); }
  // As the newest turn of the thread went.
  void hear(const QueueNews& news);

  // Whether lines are for the queue, which need not have room for one more yet.
  bool wants_lines() const { return state_ != State::alone || may_try(); }
  bool has_room() const { return may_try() || (state_ == State::shares && lines_ < kAwayLines && bytes_ < kAwayBytes); }
  void went(std::size_t bytes) {
    tries_ = false;
    count(1, static_cast<std::int64_t>(bytes));
  }
  void came(std::size_t bytes) { count(-1, -static_cast<std::int64_t>(bytes)); }

  // What is ordered in this turn of the loop, to be added to; they go when it ends.
  QueueOrders& orders() {
    if (!std::exchange(collecting_, true)) {
      ++number_;
      loop_.post([this] { flush(); });
    }
    return orders_;
  }
  // Of these orders.
  std::uint64_t number() const { return number_; }

  void acknowledge(const std::string& receipt, const LineKey& key) {
    orders().acknowledge.push_back({home_, key, {}, receipt});
  }
  void set_capacity(std::size_t lines) {
    if (capacity_ == lines) return;
    capacity_ = lines;
    orders().capacity = lines;
  }

 private:
  bool may_try() const { return tries_ && up_ && state_ != State::shares; }
  void wait();
  void hear_refusal(const std::string& reason);
  void end_refusal();
  void tell();
  void count(std::int64_t lines, std::int64_t bytes) {
    lines_ += static_cast<std::size_t>(lines);
    bytes_ += static_cast<std::size_t>(bytes);
    metrics_.away.add(lines);
    metrics_.away_bytes.add(bytes);
  }
  void flush() {
    if (!std::exchange(collecting_, false)) return;
    orders_.number = number_;
    port_.order(std::exchange(orders_, {}));
  }

  QueuePort& port_;
  const std::string home_;
  QueueMetrics& metrics_;
  net::EventLoop& loop_;
  const Pauses pauses_;
  const Host host_;
  net::Timer timer_;  // of the patience
  net::Timer try_;
  State state_ = State::waits;
  bool up_ = false;
  bool refused_ = false;  // the last line that was sent
  bool tries_ = false;    // whether one more goes, to see
  bool told_ = false;     // the log has it
  std::string reason_;
  Duration pause_{};
  TimePoint taken_at_{};  // when the last refusal ended
  QueueOrders orders_;
  std::uint64_t number_ = 0;
  bool collecting_ = false;
  std::optional<std::size_t> capacity_{};
  std::size_t lines_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace chasqui
