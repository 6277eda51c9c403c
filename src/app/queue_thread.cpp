#include "app/queue_thread.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/thread_name.h"

namespace chasqui {
namespace {

constexpr std::size_t kNewsWaiting = 16;
// Between two looks at a broker that has nothing, more and more.
constexpr Duration kLookSoon = milliseconds(2);
constexpr Duration kLookBusy = milliseconds(20);   // while this node runs lines
constexpr Duration kLookIdle = milliseconds(100);  // … and while it does not
constexpr Duration kTryQueue = milliseconds(250);

}  // namespace

QueueThread::QueueThread(std::unique_ptr<LineQueue> queue, const std::string& home, net::EventLoop& loop,
                         std::function<void(QueueNews)> hear)
    : queue_(std::move(queue)),
      turn_(*queue_, home, clock_, metrics_),
      hear_(std::move(hear)),
      inbox_(1),
      outbox_(kNewsWaiting, [this] { wakeup_.signal(); }),
      listener_(loop, wakeup_, [this] { tell(); }) {}

QueueThread::~QueueThread() {
  ends_.store(true);
  inbox_.close();
  if (thread_.joinable()) thread_.join();
}

void QueueThread::begin() {
  thread_ = std::thread([this] { run(); });
}

void QueueThread::order(QueueOrders orders) {
  inbox_.merge(std::move(orders), [](QueueOrders& waiting, QueueOrders& later) {
    waiting.add(std::move(later));
    return true;
  });
}

void QueueThread::tell() {
  std::vector<QueueNews> news;
  outbox_.drain(news);
  for (QueueNews& each : news) hear_(std::move(each));
}

void QueueThread::run() {
  name_this_thread("batch-queue");
  std::vector<QueueOrders> orders;
  std::optional<bool> up;
  Duration pause = Duration::zero();
  while (!ends_.load()) {
    inbox_.drain_within(orders, pause);
    if (ends_.load()) break;
    // A loop that does not listen gets no more, and lines are kept alive.
    QueueOrders all;
    for (QueueOrders& each : orders) all.add(std::move(each));
    QueueNews news = turn_.run(std::move(all));
    const Duration most = turn_.holds_lines() ? kLookBusy : kLookIdle;
    const bool fails = !news.up || !news.refusal.empty();
    pause = fails ? kTryQueue : turn_.is_busy() ? Duration::zero() : std::clamp(2 * pause, kLookSoon, most);
    if (news.says_something() || up != news.up) {
      up = news.up;
      tell_loop(std::move(news));
    }
  }
  QueueOrders last;
  std::vector<QueueOrders> rest;
  inbox_.drain(rest);
  for (QueueOrders& each : orders) last.add(std::move(each));
  for (QueueOrders& each : rest) last.add(std::move(each));
  turn_.finish(std::move(last));
}

// Beyond the capacity of the mailbox if need be: what is in the news is bounded by what the loop has asked for.
void QueueThread::tell_loop(QueueNews news) {
  std::vector<QueueNews> one;
  one.push_back(std::move(news));
  outbox_.push_all(one);
}

}  // namespace chasqui
