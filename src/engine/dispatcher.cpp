#include "engine/dispatcher.h"

#include "base/thread_name.h"

namespace chasqui {

Dispatcher::Dispatcher(const DispatcherConfig& config, const Workers& workers, const Clock& clock,
                       Mailbox<Event>& outbox, DispatchMetrics& metrics)
    : config_(config),
      workers_(workers),
      clock_(clock),
      outbox_(outbox),
      metrics_(metrics),
      inbox_(config.inbox_max),
      placement_(config.placement),
      states_(workers.size()),
      outgoing_(workers.size()),
      thread_([this] { run(); }) {}

Dispatcher::~Dispatcher() {
  post(StopCommand{});
  thread_.join();
}

// For what must not be lost and bounds itself: an end for each request, an unpin for each session.
void Dispatcher::post(Order order) {
  std::vector<Order> one;
  one.push_back(std::move(order));
  inbox_.push_all(one);
}

void Dispatcher::run() {
  name_this_thread("dispatcher");
  while (!stopped_) {
    inbox_.drain(orders_, Wait::yes);
    look_at_workers();
    for (Order& order : orders_) std::visit([this](auto& one) { take(one); }, order);
    hand_out();
  }
}

void Dispatcher::look_at_workers() {
  const TimePoint now = clock_.now();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Load load = workers_[i]->load();
    const Duration held = load.running > 0 ? now - load.running_since : Duration::zero();
    states_[i] = {load, held, workers_[i]->alive(now, config_.stuck_after)};
  }
}

void Dispatcher::take(SubmitCommand& submit) {
  const auto choice = placement_.place(*submit.request, states_);
  if (!choice) return refuse(*submit.request);
  metrics_.placements[static_cast<std::size_t>(choice->reason)].add();
  outgoing_[choice->worker].emplace_back(std::move(submit));
}

// Commands for requests that have ended are dropped.
void Dispatcher::take(const CancelCommand& cancel) {
  if (const auto worker = placement_.worker_of(cancel.id)) outgoing_[*worker].emplace_back(cancel);
}

void Dispatcher::take(const EndCommand& end) {
  for (const RequestId request : end.requests) placement_.ended(request);
}

void Dispatcher::take(const ListCommand& list) {
  *list.requests = placement_.requests_of(list.worker);
  list.done->store(true, std::memory_order_release);
  list.done->notify_all();
}

std::vector<RequestId> Dispatcher::requests_of(std::size_t worker) {
  std::vector<RequestId> requests;
  std::atomic<bool> done{false};
  post(ListCommand{worker, &requests, &done});
  done.wait(false);
  return requests;
}

// It was let in, so it has to end here (one-terminal).
void Dispatcher::refuse(const Request& request) {
  Event event;
  event.request = request.id;
  event.kind = Event::Kind::finished;
  event.service_class = request.service_class;
  event.reason = FinishReason::error;
  event.usage.prompt = static_cast<TokenCount>(request.prompt.size());
  event.error = {ErrorCode::overloaded, "too many sessions are open; end some, or retry later", ""};
  metrics_.refused.add();
  refusals_.push_back(std::move(event));
}

void Dispatcher::hand_out() {
  // Before anybody can see what comes of this pass.
  metrics_.pins.set(static_cast<std::int64_t>(placement_.pins()));
  metrics_.requests.set(static_cast<std::int64_t>(placement_.in_flight()));
  metrics_.sent_tokens.set(static_cast<std::int64_t>(placement_.sent_tokens()));
  for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i]->post_all(outgoing_[i]);
  outbox_.push_all(refusals_);
}

}  // namespace chasqui
