// Lines that this node has taken from the queue of --batch-queue, and runs as those of its own batches: of class
// background, with the rights of their tenant here. What they come to goes to their home; also what the server fails to
// answer, which the home tries again. Part of the BatchRunner; loop thread.
//
// What this node cannot run goes back to the others, and it takes no more for a while: at once where it is busy; after
// kParked where it does not know the tenant or the model, and to the home when no node has known it for kRefusedFor. A
// line of a tenant that has as many running here as it may waits for one of them, kParked at most. A line that
// kLossesMost nodes have not survived is answered with an error.
//
// bounded: the BatchRunner says how many are taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch/line_exchange.h"
#include "api/batch/line_share.h"
#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "net/event_loop.h"

namespace chasqui {

// Answers a request as its route does, for a caller that is known.
using LineHandler = std::function<net::Awaitable<void>(std::string path, Caller caller, net::HttpExchange& exchange)>;

// A line of a batch runs with the tenant's rights, and never before requests that a client waits for.
Caller line_caller(Caller caller);

class ForeignLines {
 public:
  static constexpr Duration kParked = seconds(2);
  static constexpr std::int64_t kRefusedFor = 600;  // in seconds: a node that knows it may be busy with others
  static constexpr std::uint32_t kLossesMost = 5;

  struct Host {
    std::function<void(net::Awaitable<void>, std::string_view)> launch;
    std::function<bool(std::uint64_t owner)> may_begin;  // whether one more line of the tenant may run here
    std::function<void()> changed;
  };

  // All outlive it.
  ForeignLines(const Frontend& frontend, const LineHandler& handler, LineShare& share, Host host)
      : frontend_(frontend), handler_(handler), share_(share), host_(std::move(host)) {}
  ForeignLines(const ForeignLines&) = delete;
  ForeignLines& operator=(const ForeignLines&) = delete;

  void take(std::vector<TakenLine> lines);
  // They are not this node's any more.
  void lose(const std::vector<std::string>& receipts);
  // Begins those that wait and may, gives back those that have waited for too long.
  void pump();
  // Gives back those that have not begun …
  void give_back_waiting();
  // … and stops the others, which are then given back.
  void stop();

  std::size_t running() const { return running_; }
  std::size_t running_of(std::uint64_t owner) const;
  // When pump() has to be called again; kNever: nothing waits.
  TimePoint next_time() const;
  // It was busy when a line was to run, or has refused one: none is taken until then.
  TimePoint paused_until() const { return std::max(paused_until_, takes_from_); }

 private:
  struct Held {
    TakenLine taken;
    TimePoint until{};                 // waits, at most so long
    bool refused = false;              // by this node
    bool lost = false;                 // another node has it, or it is withdrawn
    LineExchange* exchange = nullptr;  // where it runs
    bool runs = false;
  };
  using HeldPtr = std::shared_ptr<Held>;
  class Place;

  void admit(TakenLine taken);
  net::Awaitable<void> run(HeldPtr held);
  void finish(Held& held, LineExchange& exchange, const std::string& request_id);
  void answer(const TakenLine& taken, LineEnd end, int status, std::string request_id, std::string body);
  void give_back(const TakenLine& taken, std::int64_t refused_since);
  void refuse(Held& held);
  void park(Held& held, bool refused);
  void forget(const std::string& receipt);
  LinePost post_of(const TakenLine& taken) const { return {taken.line.home, taken.line.key, {}, taken.receipt}; }

  const Frontend& frontend_;
  const LineHandler& handler_;
  LineShare& share_;
  const Host host_;
  std::map<std::string, HeldPtr> held_;  // by receipt
  std::map<std::uint64_t, std::size_t> running_of_;
  std::size_t running_ = 0;
  TimePoint paused_until_{};
  Duration pause_{};
  TimePoint takes_from_{};  // lines that it refused are to find other nodes
  Duration refusal_{};      // the last such pause, since a line was answered
};

}  // namespace chasqui
