#include "net/freeing_queue.h"

#include <iterator>
#include <utility>

namespace chasqui::net {
namespace {

constexpr Duration kPoolIsFull = seconds(1);

}  // namespace

FreeingQueue::FreeingQueue(EventLoop& loop, OffloadPool& pool, std::size_t most)
    : state_(std::make_shared<State>(State{.loop = loop, .pool = &pool, .most = most})) {}

FreeingQueue::~FreeingQueue() {
  state_->pool = nullptr;
  state_->waiting.clear();
}

FreeLater FreeingQueue::free_later() const {
  return [state = state_](std::shared_ptr<const void> thing) { take(state, std::move(thing)); };
}

void FreeingQueue::take(const StatePtr& state, std::shared_ptr<const void> thing) {
  if (state->pool == nullptr || state->waiting.size() >= state->most) return;  // freed here
  state->waiting.push_back(std::move(thing));
  if (std::exchange(state->running, true)) return;
  state->loop.spawn(free_all(state), "freeing queue");
}

Awaitable<void> FreeingQueue::free_all(StatePtr state) {
  while (state->pool != nullptr && !state->waiting.empty()) {
    // Shared, since the job is destroyed on the loop: by then it must be empty, or have given everything back.
    const auto things = std::make_shared<Things>(std::exchange(state->waiting, {}));
    auto work = [things] { things->clear(); };
    OffloadTerms terms;
    terms.can_wait = OffloadPool::kLong;
    const Result<void> freed = co_await state->pool->run(std::move(work), std::move(terms));
    if (freed) continue;
    state->waiting.insert(state->waiting.end(), std::move_iterator(things->begin()), std::move_iterator(things->end()));
    Timer timer(state->loop.executor(), kPoolIsFull);
    co_await timer.async_wait(kAwait);
  }
  state->running = false;
}

}  // namespace chasqui::net
