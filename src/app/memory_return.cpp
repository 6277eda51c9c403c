#include "app/memory_return.h"

#include "base/freed_memory.h"

namespace chasqui {
namespace {

constexpr Duration kReturnEvery = seconds(2);
constexpr int kReturnRounds = 2;
// So many jobs of the pool and ends of requests in all, and then so few in the time between two looks.
constexpr std::uint64_t kCrowd = 2000;
constexpr std::uint64_t kFew = 20;

}  // namespace

void MemoryReturn::look() {
  if (take_large_body() || crowd_has_left()) rounds_ = kReturnRounds;
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

bool MemoryReturn::crowd_has_left() {
  const std::uint64_t done = offload_.asked() + ended_;
  const std::uint64_t fresh = done - done_;
  done_ = done;
  crowd_ += fresh;
  if (crowd_ < kCrowd || fresh >= kFew) return false;
  crowd_ = 0;
  return true;
}

net::Awaitable<void> MemoryReturn::give_back() {
  auto work = [] { give_back_freed_memory(); };
  const Result<void> done = co_await offload_.run(std::move(work));
  if (!done) rounds_ = kReturnRounds;  // the pool has much to do
  busy_ = false;
}

}  // namespace chasqui
