// The thread that talks to the broker of --batch-queue: it takes orders of the loop, carries them out by a QueueTurn,
// and tells the loop what has come. Part of the BatchService; made, begun and destroyed on the loop's thread. The loop
// never waits for it, but at the end: as long as the broker lets it wait for the last orders.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "api/batch/line_share.h"
#include "base/clock.h"
#include "base/mailbox.h"
#include "base/wakeup.h"
#include "jobs/line_queue.h"
#include "jobs/queue_turn.h"
#include "net/event_loop.h"
#include "net/wakeup_listener.h"

namespace chasqui {

class QueueThread final : public QueuePort {
 public:
  // `hear` runs on the loop for all that is new.
  QueueThread(std::unique_ptr<LineQueue> queue, const std::string& home, net::EventLoop& loop,
              std::function<void(QueueNews)> hear);
  ~QueueThread() override;
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  void begin();
  void order(QueueOrders orders) override;
  QueueMetrics& metrics() { return metrics_; }

 private:
  void run();
  void tell();
  void tell_loop(QueueNews news);

  const RealClock clock_;
  const std::unique_ptr<LineQueue> queue_;
  QueueMetrics metrics_;
  QueueTurn turn_;  // the thread's, once it runs
  const std::function<void(QueueNews)> hear_;
  Wakeup wakeup_;
  Mailbox<QueueOrders> inbox_;  // all orders are one
  Mailbox<QueueNews> outbox_;
  net::WakeupListener listener_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace chasqui
