// The loop's end of the queue that nodes share (--batch-queue): whether the queue takes lines, how many of this node's
// own are in it, and orders for its thread, which go out together at the end of a turn of the loop. Part of the
// BatchRunner; loop thread.
//
// A broker that does not answer for kPatience leaves this node alone with its batches until it answers again.
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
  static constexpr Duration kPatience = seconds(2);
  static constexpr std::size_t kAwayLines = 256;
  static constexpr std::size_t kAwayBytes = std::size_t{64} << 20;

  enum class State {
    waits,   // it is not known yet whether the broker answers
    shares,  // lines go into the queue
    alone,   // they run here
  };

  // All outlive it. `on_alone` runs when the broker has not answered for too long.
  LineShare(QueuePort& port, std::string home, QueueMetrics& metrics, net::EventLoop& loop,
            std::function<void()> on_alone)
      : port_(port),
        home_(std::move(home)),
        metrics_(metrics),
        loop_(loop),
        on_alone_(std::move(on_alone)),
        timer_(loop.executor()) {}
  ~LineShare() { flush(); }
  LineShare(const LineShare&) = delete;
  LineShare& operator=(const LineShare&) = delete;

  const std::string& home() const { return home_; }
  QueueMetrics& metrics() { return metrics_; }
  State state() const { return state_; }

  void begin() { wait(); }
  // As the newest turn of the thread went.
  void hear(bool up) {
    if (up) {
      timer_.cancel();
      state_ = State::shares;
    } else if (state_ == State::shares) {
      wait();
    }
  }

  bool has_room() const { return state_ == State::shares && lines_ < kAwayLines && bytes_ < kAwayBytes; }
  void went(std::size_t bytes) { count(1, static_cast<std::int64_t>(bytes)); }
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
  void wait() {
    state_ = State::waits;
    timer_.expires_after(kPatience);
    timer_.async_wait([this](net::SystemError error) {
      if (error || state_ != State::waits) return;
      state_ = State::alone;
      on_alone_();
    });
  }
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
  const std::function<void()> on_alone_;
  net::Timer timer_;
  State state_ = State::waits;
  QueueOrders orders_;
  std::uint64_t number_ = 0;
  bool collecting_ = false;
  std::optional<std::size_t> capacity_{};
  std::size_t lines_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace chasqui
