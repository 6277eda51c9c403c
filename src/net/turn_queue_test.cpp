#include "net/turn_queue.h"

#include <string>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

class TurnQueueTest : public testing::Test {
 protected:
  Awaitable<void> work(TurnQueue& queue, char name, int pieces) {
    TurnQueue::Turn turn;
    for (int i = 0; i < pieces; ++i) {
      co_await queue.take(turn);
      order_ += name;
    }
    if (--running_ == 0) loop_.stop();
  }

  // Notes each pass of the loop.
  void tick() {
    order_ += '|';
    asio::post(loop_.executor(), [this] { tick(); });
  }

  void run(TurnQueue& queue, int callers, int pieces) {
    running_ = callers;
    for (int i = 0; i < callers; ++i) loop_.spawn(work(queue, static_cast<char>('a' + i), pieces), "caller");
    asio::post(loop_.executor(), [this] { tick(); });
    loop_.run();
  }

  NetMetrics metrics_;
  EventLoop loop_{metrics_};
  std::string order_;
  int running_ = 0;
};

TEST_F(TurnQueueTest, LetsACallerGoOnWhileThereIsTime) {
  TurnQueue queue(loop_, seconds(3600));
  run(queue, 2, 3);
  EXPECT_NE(order_.find("aaa"), std::string::npos) << order_;
  EXPECT_NE(order_.find("bbb"), std::string::npos) << order_;
}

TEST_F(TurnQueueTest, GivesTurnsInOrderAndNoMoreThanFourInAPass) {
  TurnQueue queue(loop_, Duration::zero());
  run(queue, 6, 3);
  std::string pieces;
  int in_pass = 0;
  for (const char c : order_) {
    in_pass = c == '|' ? 0 : in_pass + 1;
    EXPECT_LE(in_pass, 4) << order_;
    if (c != '|') pieces += c;
  }
  EXPECT_EQ(pieces, "abcdefabcdefabcdef");
}

}  // namespace
}  // namespace chasqui::net
