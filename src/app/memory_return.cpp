#include "app/memory_return.h"

#include "base/freed_memory.h"

namespace chasqui {
namespace {

constexpr Duration kReturnEvery = seconds(2);
constexpr int kReturnRounds = 2;

}  // namespace

void MemoryReturn::look() {
  if (take_large_body()) rounds_ = kReturnRounds;
  if (rounds_ > 0 && !busy_) {
    --rounds_;
    busy_ = true;
    loop_.spawn(give_back(), "memory return");
  }
  timer_.expires_after(kReturnEvery);
  timer_.async_wait([this](net::SystemError error) {
    if (!error) look();
  });
}

net::Awaitable<void> MemoryReturn::give_back() {
  auto work = [] { give_back_freed_memory(); };
  const Result<void> done = co_await offload_.run(std::move(work));
  if (!done) rounds_ = kReturnRounds;  // the pool has much to do
  busy_ = false;
}

}  // namespace chasqui
