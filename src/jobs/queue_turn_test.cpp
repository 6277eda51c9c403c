// What one turn of the thread of the batch queue does, and what is left for the next when the broker fails.
#include "jobs/queue_turn.h"

#include <gtest/gtest.h>

#include "jobs/fake_line_queue.h"

namespace chasqui {
namespace {

class QueueTurnTest : public testing::Test {
 protected:
  static LinePost line(std::uint32_t number) {
    SharedLine shared;
    shared.home = "home";
    shared.key = {"batch", number};
    shared.endpoint = "/v1/chat/completions";
    shared.body = "{}";
    return {"home", shared.key, write_message(shared), {}};
  }
  static LinePost answer(const TakenLine& taken, std::string body = "{}") {
    const SharedResult result{taken.line.key, LineEnd::answered, 200, "id", std::move(body)};
    return {taken.line.home, taken.line.key, write_message(result), taken.receipt};
  }
  QueueNews publish(std::vector<LinePost> lines) {
    QueueOrders orders;
    orders.number = ++orders_;
    orders.publish = std::move(lines);
    return home_.run(std::move(orders));
  }
  QueueNews with_capacity(std::size_t lines) {
    QueueOrders orders;
    orders.capacity = lines;
    return node_.run(std::move(orders));
  }
  std::vector<TakenLine> take(std::size_t capacity) { return with_capacity(capacity).lines; }
  QueueNews answered(LinePost post) {
    QueueOrders orders;
    orders.answers.push_back(std::move(post));
    return node_.run(std::move(orders));
  }

  FakeBroker broker_;
  ManualClock clock_;
  QueueMetrics home_metrics_;
  QueueMetrics node_metrics_;
  FakeLineQueue home_queue_{broker_, "home"};
  FakeLineQueue node_queue_{broker_, "node"};
  QueueTurn home_{home_queue_, "home", clock_, home_metrics_};
  QueueTurn node_{node_queue_, "node", clock_, node_metrics_};
  std::uint64_t orders_ = 0;
};

TEST_F(QueueTurnTest, CarriesLinesThereAndResultsBack) {
  EXPECT_TRUE(publish({line(1), line(2), line(3)}).up);
  const auto taken = take(2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].line.key.line, 1u);
  EXPECT_TRUE(take(2).empty()) << "it holds as many as it may";
  EXPECT_EQ(answered(answer(taken[0])).lines.size(), 1u) << "one place was free";

  QueueNews news = home_.run({});
  ASSERT_EQ(news.results.size(), 1u);
  EXPECT_EQ(news.results[0].result.key.line, 1u);
  QueueOrders orders;
  orders.acknowledge.push_back({"home", {"batch", 1}, {}, news.results[0].receipt});
  home_.run(std::move(orders));
  EXPECT_TRUE(broker_.results["home"].empty());
}

TEST_F(QueueTurnTest, TellsTheLoopOfLinesThatDidNotGo) {
  broker_.down = true;
  const QueueNews news = publish({line(1), line(2)});
  EXPECT_FALSE(news.up);
  ASSERT_EQ(news.unsent.size(), 2u);
  EXPECT_FALSE(news.unsent[0].too_large);
  broker_.down = false;
  EXPECT_TRUE(home_.run({}).up);
  EXPECT_TRUE(broker_.lines.empty()) << "the loop decides again";
  EXPECT_EQ(home_metrics_.errors.value(), 1u);
}

TEST_F(QueueTurnTest, SaysThatTheBrokerAnswersAndRefusesLines) {
  EXPECT_TRUE(publish({line(1)}).up);
  broker_.refuses = true;
  for (int turn = 0; turn < 3; ++turn) {
    const QueueNews news = publish({line(2), line(3)});
    EXPECT_TRUE(news.up) << "it is not down";
    EXPECT_NE(news.refusal, "");
    EXPECT_EQ(news.unsent.size(), 2u);
    EXPECT_TRUE(home_.run({}).up);
  }
  broker_.refuses = false;
  EXPECT_FALSE(home_.run({}).takes_again) << "nothing was sent";
  QueueNews news = publish({line(2)});
  EXPECT_TRUE(news.takes_again);
  EXPECT_EQ(news.refusal, "");
  EXPECT_FALSE(publish({line(3)}).takes_again) << "it is said once";
  EXPECT_EQ(home_metrics_.errors.value(), 3u);
}

TEST_F(QueueTurnTest, TakesResultsFromABrokerThatRefusesAnswers) {
  publish({line(1)});
  const auto taken = take(1);
  broker_.results["node"].push_back(
      {++broker_.last_id, write_message(SharedResult{{"own", 1}, LineEnd::answered, 200, "id", "{}"})});
  broker_.refuses = true;
  const QueueNews news = answered(answer(taken.at(0)));
  EXPECT_TRUE(news.up);
  EXPECT_NE(news.refusal, "");
  EXPECT_EQ(news.results.size(), 1u) << "what is acknowledged makes room";
  broker_.refuses = false;
  EXPECT_EQ(node_.run({}).refusal, "");
  EXPECT_EQ(home_.run({}).results.size(), 1u);
}

TEST_F(QueueTurnTest, KeepsAnswersUntilTheBrokerTakesThem) {
  publish({line(1)});
  const auto taken = take(1);
  broker_.down = true;
  EXPECT_FALSE(answered(answer(taken.at(0))).up);
  broker_.down = false;
  EXPECT_TRUE(node_.run({}).up);
  EXPECT_EQ(home_.run({}).results.size(), 1u);
}

TEST_F(QueueTurnTest, TellsTheHomeOfAnAnswerThatIsTooLarge) {
  publish({line(1)});
  node_queue_.set_most(200);
  answered(answer(take(1).at(0), std::string(300, 'x')));
  const QueueNews news = home_.run({});
  ASSERT_EQ(news.results.size(), 1u);
  EXPECT_EQ(news.results[0].result.end, LineEnd::refused);
}

TEST_F(QueueTurnTest, CountsNodesThatWereNotHeardOfAgain) {
  publish({line(1)});
  EXPECT_EQ(take(1).at(0).line.losses, 0u);
  broker_.redeliver();
  clock_.advance(QueueTurn::kKeepEvery);
  EXPECT_EQ(with_capacity(0).lost.size(), 1u);
  const auto again = take(1);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].line.losses, 1u);
  EXPECT_EQ(node_metrics_.redelivered.value(), 1u);
}

TEST_F(QueueTurnTest, CountsNoOutageOfTheBrokerAsTheEndOfANode) {
  publish({line(1)});
  for (int outage = 0; outage < 5; ++outage) {
    if (outage > 0) {
      EXPECT_TRUE(take(1).empty()) << "it goes back first";
    }
    const auto taken = take(1);
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken[0].line.losses, 0u);
    broker_.down = true;
    EXPECT_FALSE(node_.run({}).up);
    clock_.advance(seconds(20));
    EXPECT_FALSE(node_.run({}).up);
    broker_.down = false;
    broker_.redeliver();
    EXPECT_TRUE(with_capacity(0).up);  // and it hears that the line is not its own any more
  }
  EXPECT_TRUE(take(1).empty());
  const auto again = take(1);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].line.losses, 0u);

  clock_.advance(QueueTurn::kAfterOutage);
  EXPECT_TRUE(with_capacity(0).lost.empty());
  broker_.redeliver();
  clock_.advance(QueueTurn::kKeepEvery);
  EXPECT_EQ(with_capacity(0).lost.size(), 1u);
  const auto later = take(1);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].line.losses, 1u) << "the broker was up";
}

TEST_F(QueueTurnTest, KeepsCountOfEndedNodesThroughAnOutage) {
  publish({line(1)});
  ASSERT_EQ(take(1).size(), 1u);
  for (int death = 0; death < 2; ++death) {
    broker_.redeliver();
    clock_.advance(QueueTurn::kKeepEvery);
    with_capacity(0);
    ASSERT_EQ(take(1).at(0).line.losses, 1u + static_cast<unsigned>(death));
  }
  broker_.down = true;
  node_.run({});
  clock_.advance(seconds(20));
  node_.run({});
  broker_.down = false;
  broker_.redeliver();
  with_capacity(0);
  EXPECT_TRUE(take(1).empty()) << "it goes back first";
  EXPECT_EQ(take(1).at(0).line.losses, 2u);
}

TEST_F(QueueTurnTest, DropsWhatIsNoMessage) {
  broker_.lines.push_back({++broker_.last_id, "home", {"batch", 1}, "nonsense", {}, 0});
  broker_.results["home"].push_back({++broker_.last_id, "nonsense"});
  EXPECT_TRUE(take(4).empty());
  EXPECT_TRUE(home_.run({}).results.empty());
  node_.run({});
  home_.run({});
  EXPECT_TRUE(broker_.lines.empty());
  EXPECT_TRUE(broker_.results["home"].empty());
  EXPECT_EQ(node_metrics_.unreadable.value(), 1u);
  EXPECT_EQ(home_metrics_.unreadable.value(), 1u);
}

TEST_F(QueueTurnTest, SaysWhichLinesTheBrokerHas) {
  publish({line(1), line(2)});
  broker_.lines.erase(broker_.lines.begin());
  EXPECT_FALSE(home_.run({}).outstanding) << "it was asked at the first turn";
  clock_.advance(QueueTurn::kLookEvery);
  const QueueNews news = home_.run({});
  ASSERT_TRUE(news.outstanding);
  EXPECT_EQ(news.outstanding->orders, 1u);
  EXPECT_EQ(news.outstanding->keys, (std::vector<LineKey>{{"batch", 2}}));
}

TEST_F(QueueTurnTest, HandsOverNoMoreResultsThanAreAcknowledged) {
  for (std::size_t i = 0; i < QueueTurn::kResultsOpen + 100; ++i) {
    const SharedResult result{{"batch", static_cast<std::uint32_t>(i)}, LineEnd::answered, 200, "id", "{}"};
    broker_.results["home"].push_back({++broker_.last_id, write_message(result)});
  }
  std::size_t handed = 0;
  for (int turn = 0; turn < 20; ++turn) handed += home_.run({}).results.size();
  EXPECT_EQ(handed, QueueTurn::kResultsOpen);
}

TEST_F(QueueTurnTest, LeavesResultsAtTheBrokerForWhichThereIsNoRoom) {
  constexpr std::size_t kBytes = std::size_t{9} << 20;
  constexpr std::size_t kCount = 16;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const SharedResult result{{"batch", i}, LineEnd::answered, 200, "id", std::string(kBytes, 'x')};
    broker_.results["home"].push_back({++broker_.last_id, write_message(result)});
  }
  std::vector<std::string> held;
  std::size_t came = 0;
  for (int turn = 0; turn < 40 && came < kCount; ++turn) {
    QueueOrders orders;
    if (turn % 2 == 1 && !held.empty()) {
      orders.acknowledge.push_back({"home", {"batch", 0}, {}, held.back()});
      held.pop_back();
    }
    for (const ArrivedResult& arrived : home_.run(std::move(orders)).results) {
      held.push_back(arrived.receipt);
      ++came;
    }
    EXPECT_LE(held.size() * kBytes, QueueTurn::kResultBytesOpen);
    EXPECT_GE(home_metrics_.result_bytes.value(), static_cast<std::int64_t>(held.size() * kBytes));
  }
  EXPECT_EQ(came, kCount);
}

}  // namespace
}  // namespace chasqui
