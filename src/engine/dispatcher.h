// Brings every command to the worker it is for, where there are several: the only consumer of the global queue. One
// thread, asleep unless a command arrives. Events do not come through here: workers write to the outbox themselves.
// Owned by the Engine. Where a request goes is decided by engine/placement.h.
//
// It remembers who has which request from submit() to ended(), so at most as many as the Engine lets in. In one pass it
// hands all commands to a worker at once, whatever the size of its inbox: a command that the Engine has taken is never
// lost here. There are at most one submit and one cancel for each request.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "engine/engine_metrics.h"
#include "engine/placement.h"
#include "engine/worker.h"

namespace chasqui {

using Workers = std::vector<std::unique_ptr<Worker>>;

struct DispatcherConfig {
  PlacementConfig placement;
  Duration stuck_after{};     // a worker that has not moved for so long gets no new work
  std::size_t inbox_max = 0;  // submits and cancels
};

class Dispatcher {
 public:
  // All outlive the dispatcher. Starts the thread.
  Dispatcher(const DispatcherConfig& config, const Workers& workers, const Clock& clock, Mailbox<Event>& outbox,
             DispatchMetrics& metrics);
  // Hands over what has been posted and waits for the thread, which never waits for a worker.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Any thread. False when the inbox is full; nothing has happened then.
  bool submit(RequestPtr request) { return inbox_.push(SubmitCommand{std::move(request)}); }
  bool cancel(RequestId request) { return inbox_.push(CancelCommand{request}); }
  // The finished events of these requests have been taken.
  void ended(std::vector<RequestId> requests) { post(EndCommand{std::move(requests)}); }
  // What a worker has of those that have not ended. Waits for the dispatcher, which never waits.
  std::vector<RequestId> requests_of(std::size_t worker);
  // No more requests with this pin will come; another one may begin anew anywhere.
  void unpin(std::uint64_t pin) { post(UnpinCommand{pin}); }
  // This worker's cache has these tokens, though it was sent no prompt of them.
  void brought(std::size_t worker, PrefixKey key, std::vector<Token> tokens) {
    post(BroughtCommand{worker, key, std::move(tokens)});
  }

 private:
  struct EndCommand {
    std::vector<RequestId> requests;
  };
  struct ListCommand {
    std::size_t worker = 0;
    std::vector<RequestId>* requests = nullptr;  // belongs to the thread that waits for `done`
    std::atomic<bool>* done = nullptr;
  };
  struct UnpinCommand {
    std::uint64_t pin = 0;
  };
  struct BroughtCommand {
    std::size_t worker = 0;
    PrefixKey key;
    std::vector<Token> tokens;
  };
  using Order =
      std::variant<SubmitCommand, CancelCommand, EndCommand, ListCommand, UnpinCommand, BroughtCommand, StopCommand>;

  void post(Order order);
  void run();
  void look_at_workers();
  void take(SubmitCommand& submit);
  void take(const CancelCommand& cancel);
  void take(const EndCommand& end);
  void take(const ListCommand& list);
  void take(const UnpinCommand& unpin) { placement_.unpin(unpin.pin); }
  void take(const BroughtCommand& brought) { placement_.brought(brought.worker, brought.key, brought.tokens); }
  void take(const StopCommand&) { stopped_ = true; }
  void refuse(const Request& request);
  void hand_out();

  const DispatcherConfig config_;
  const Workers& workers_;
  const Clock& clock_;
  Mailbox<Event>& outbox_;
  DispatchMetrics& metrics_;
  Mailbox<Order> inbox_;

  // Dispatcher's thread only.
  Placement placement_;
  std::vector<Order> orders_;
  std::vector<WorkerState> states_;             // by worker, as they were when this pass began
  std::vector<std::vector<Command>> outgoing_;  // by worker
  std::vector<Event> refusals_;
  bool stopped_ = false;

  std::thread thread_;  // last: everything above exists before it starts
};

}  // namespace chasqui
