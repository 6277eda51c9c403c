// Batches whose lines go through a queue that loses connections, delivers twice and forgets, on nodes that end and come
// back: each line has one result.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/batch/batch_runner.h"
#include "api/core/fake_node.h"
#include "jobs/fake_line_queue.h"
#include "net/event_signal.h"

namespace chasqui {
namespace {

constexpr std::size_t kLines = 150;
constexpr LineShare::Pauses kShort{milliseconds(20), milliseconds(1), milliseconds(2), milliseconds(10)};

// One process of a node: what it leaves behind is in the folder, and in the broker.
struct Process final : QueuePort {
  Process(std::shared_ptr<JobFolder> folder, const std::string& home, FakeFrontend& shared, FakeBroker& broker,
          const Clock& clock, std::size_t slots, LineShare::Pauses pauses, LineHandler handler)
      : store(std::move(folder), 1 << 30, shared.loop, shared.clock),
        runner(
            store, shared.node.frontend, [slots] { return slots; }, std::move(handler)),
        queue(broker, home),
        turn(queue, home, clock, metrics) {
    store.load();
    runner.share(*this, home, metrics, pauses);
  }

  void order(QueueOrders later) override { orders.add(std::move(later)); }
  void take_turn() { runner.hear(turn.run(std::exchange(orders, {}))); }

  QueueMetrics metrics;
  QueueOrders orders;
  BatchStore store;
  BatchRunner runner;
  FakeLineQueue queue;
  QueueTurn turn;
};

class BatchSharingTest : public testing::Test {
 protected:
  struct Home {
    std::string path;
    std::string name;
    std::shared_ptr<JobFolder> folder;
    Process* process = nullptr;
  };

  ~BatchSharingTest() override {
    processes_.clear();
    for (const Home& home : homes_) std::filesystem::remove_all(home.path);
  }

  void add_home(const std::string& name, std::size_t slots = 4) {
    std::string pattern = testing::TempDir() + "sharing-XXXXXX";
    Home home{::mkdtemp(pattern.data()), name, nullptr, nullptr};
    home.folder = *JobFolder::open(home.path);
    slots_ = slots;
    homes_.push_back(std::move(home));
    start(homes_.back());
  }
  void start(Home& home) {
    LineHandler handler = [this, name = home.name](std::string, Caller, net::HttpExchange& exchange) {
      return answer(name, exchange);
    };
    // What has ended stays until the loop has: it may still be posted to.
    processes_.push_back(
        std::make_unique<Process>(home.folder, home.name, shared_, broker_, clock_, slots_, pauses_, handler));
    home.process = processes_.back().get();
    home.process->runner.begin();
  }
  net::Awaitable<void> end(Home& home) {
    net::EventSignal ended(shared_.loop);
    home.process->runner.drain(shared_.loop.now(), [&ended] { ended.notify(); });
    co_await ended.wait();
  }

  net::Awaitable<void> answer(std::string name, net::HttpExchange& exchange) {
    ++runs_;
    if (random_() % 4 == 0) co_await pass();
    if (exchange.client_gone()) co_return;
    net::HttpResponse response;
    response.status = exchange.request().body.find("faulty") != std::string::npos ? 400 : 200;
    response.body = R"({"ran":")" + name + "\"}";
    co_await exchange.respond(std::move(response));
  }
  net::Awaitable<void> pass() {
    net::Timer timer(shared_.loop.executor());
    timer.expires_after(microseconds(200));
    net::EventSignal passed(shared_.loop);
    timer.async_wait([&passed](net::SystemError) { passed.notify(); });
    co_await passed.wait();
  }

  net::Awaitable<void> submit(Home& home, std::size_t lines = kLines) {
    std::string text;
    for (std::size_t i = 0; i < lines; ++i) {
      text += R"({"custom_id":"<)" + std::to_string(i) + R"(>","method":"POST",)";
      text += R"("url":"/v1/chat/completions","body":{"x":")";
      text += i % 10 == 3 ? "faulty\"}}\n" : "good\"}}\n";
    }
    BatchStore::Upload upload;
    upload.file.purpose = "batch";
    upload.body = std::make_shared<const std::string>(std::move(text));
    upload.content = *upload.body;
    const Result<StoredFilePtr> file = co_await home.process->store.add_file(std::move(upload));
    EXPECT_TRUE(file);
    BatchJob job;
    job.id = "batch_" + home.name;
    job.input_file = (*file)->id;
    job.endpoint = "/v1/chat/completions";
    job.output_file = "file-out" + home.name;
    job.error_file = "file-err" + home.name;
    job.created = shared_.clock.unix_seconds();
    job.expires = job.created + 3600;
    const Result<BatchJobPtr> made = co_await home.process->store.add_job(std::move(job));
    EXPECT_TRUE(made);
    home.process->runner.add(*made);
  }
  BatchJobPtr job_of(const Home& home) { return home.process->store.find_job(0, "batch_" + home.name); }

  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t out = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
    return out;
  }
  void expect_each_once(const Home& home, std::size_t lines = kLines) {
    const std::string output = home.folder->read("file-out" + home.name + ".bytes", 1 << 24).value();
    const std::string errors = home.folder->read("file-err" + home.name + ".bytes", 1 << 24).value();
    for (std::size_t i = 0; i < lines; ++i) {
      const std::string id = "\"<" + std::to_string(i) + ">\"";
      EXPECT_EQ(count(output, id), i % 10 == 3 ? 0u : 1u) << home.name << ' ' << id;
      EXPECT_EQ(count(errors, id), i % 10 == 3 ? 1u : 0u) << home.name << ' ' << id;
    }
  }

  // One thing that may happen, and then a turn of one node.
  net::Awaitable<void> happen() {
    Home& home = homes_[random_() % homes_.size()];
    switch (random_() % 25) {
      case 0: broker_.down = true; break;
      case 1: broker_.redeliver(); break;
      case 2: broker_.fail_at = broker_.calls + 1 + random_() % 4; break;
      case 3:
        if (random_() % 8 == 0) broker_.forget_all();
        break;
      case 4:
        if (random_() % 2 == 0) {
          co_await end(home);  // its orders die with it
          start(home);
        }
        break;
      case 5:
      case 6:
      case 7: broker_.down = broker_.refuses = false; break;
      case 8: broker_.refuses = true; break;
      default: break;
    }
    clock_.advance(milliseconds(random_() % 1000));
    homes_[random_() % homes_.size()].process->take_turn();
    co_await pass();
  }
  bool all_ended() {
    return std::ranges::all_of(homes_, [this](const Home& home) { return has_ended(job_of(home)->status); });
  }
  net::Awaitable<void> run_all() {
    for (Home& home : homes_) co_await submit(home);
    while (!all_ended()) co_await happen();
    broker_.down = broker_.refuses = false;
    for (Home& home : homes_) co_await end(home);
    shared_.loop.stop();
  }
  // The batch of the first home, with turns of all in order; `before` is called before each round of them.
  net::Awaitable<void> run_first(std::function<void(std::size_t round)> before) {
    co_await submit(homes_[0]);
    for (std::size_t round = 0; !has_ended(job_of(homes_[0])->status); ++round) {
      EXPECT_LT(round, 5000u) << "it does not end";
      if (round == 5000) break;
      if (before) before(round);
      clock_.advance(seconds(1));
      for (Home& home : homes_) home.process->take_turn();
      co_await pass();
    }
    broker_.down = false;
    for (Home& home : homes_) co_await end(home);
    shared_.loop.stop();
  }
  // Of two nodes; the first has no place for any line.
  void run_first_elsewhere(std::function<void(std::size_t round)> before) {
    homes_.reserve(2);
    add_home("a", 0);
    add_home("b");
    run(run_first(std::move(before)));
  }
  void run(net::Awaitable<void> work) {
    shared_.loop.spawn(std::move(work), "test");
    shared_.loop.run();
  }

  FakeFrontend shared_;
  FakeBroker broker_;
  ManualClock clock_;
  std::mt19937 random_{1};
  std::size_t slots_ = 4;
  LineShare::Pauses pauses_;
  std::size_t runs_ = 0;
  std::vector<Home> homes_;
  std::vector<std::unique_ptr<Process>> processes_;
};

class BatchSharingByChance : public BatchSharingTest, public testing::WithParamInterface<unsigned> {};

TEST_P(BatchSharingByChance, AnswersEachLineOnce) {
  random_.seed(GetParam());
  pauses_ = kShort;
  homes_.reserve(3);
  for (const char* name : {"a", "b", "c"}) add_home(name, 2);
  run(run_all());
  for (const Home& home : homes_) {
    EXPECT_EQ(job_of(home)->status, BatchStatus::completed);
    EXPECT_EQ(job_of(home)->counts.completed + job_of(home)->counts.failed, kLines);
    expect_each_once(home);
  }
  EXPECT_GE(runs_, 3 * kLines);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BatchSharingByChance, testing::Range(1u, 25u));

TEST_F(BatchSharingTest, RunsOnAnotherNode) {
  run_first_elsewhere({});
  expect_each_once(homes_[0]);
  const std::string output = homes_[0].folder->read("file-outa.bytes", 1 << 24).value();
  EXPECT_EQ(count(output, R"("ran":"b")"), kLines - kLines / 10);
  EXPECT_EQ(runs_, kLines);
  EXPECT_EQ(homes_[0].process->metrics.away.value(), 0);
}

TEST_F(BatchSharingTest, SendsAgainWhatTheBrokerDidNotTake) {
  run_first_elsewhere([this](std::size_t round) {
    const QueueMetrics& metrics = homes_[0].process->metrics;
    const bool has_first_lines = metrics.recalled.value() == 0 && metrics.away.value() > 0;  // and is to send them
    broker_.down = has_first_lines || round % 4 == 0;
  });
  expect_each_once(homes_[0]);
  EXPECT_GT(homes_[0].process->metrics.recalled.value(), 0u);
}

TEST_F(BatchSharingTest, SendsAgainWhatTheBrokerHasForgotten) {
  std::size_t times = 0;
  run_first_elsewhere([this, &times](std::size_t /*round*/) {
    if (times == 4 || broker_.lines.size() < 20) return;
    broker_.forget_all();
    ++times;
  });
  expect_each_once(homes_[0]);
  EXPECT_GT(homes_[0].process->metrics.recalled.value(), 0u);
}

TEST_F(BatchSharingTest, RunsItsLinesWhileTheBrokerTakesNone) {
  pauses_ = kShort;
  broker_.refuses = true;
  homes_.reserve(2);
  add_home("a");
  add_home("b");
  run(run_first({}));
  expect_each_once(homes_[0]);
  EXPECT_EQ(runs_, kLines);
  EXPECT_EQ(homes_[0].process->metrics.published.value(), 0u);
  EXPECT_EQ(homes_[0].process->metrics.away.value(), 0);
  EXPECT_EQ(homes_[0].process->metrics.up.value(), 1);
}

TEST_F(BatchSharingTest, WaitsForABrokerThatTakesNoLinesWhereItHasNoPlaces) {
  pauses_ = kShort;
  broker_.refuses = true;
  bool knows = false;  // what was sent before the first refusal has come back
  run_first_elsewhere([this, &knows](std::size_t round) {
    const QueueMetrics& metrics = homes_[0].process->metrics;
    if (round >= 500) broker_.refuses = false;
    if (!broker_.refuses || metrics.errors.value() == 0) return;
    knows = knows || metrics.away.value() <= 1;
    if (knows) {
      EXPECT_LE(metrics.away.value(), 1) << "one is enough to see that it takes none";
    }
    EXPECT_EQ(runs_, 0u);
  });
  EXPECT_TRUE(knows);
  expect_each_once(homes_[0]);
  const std::string output = homes_[0].folder->read("file-outa.bytes", 1 << 24).value();
  EXPECT_EQ(count(output, R"("ran":"b")"), kLines - kLines / 10);
}

TEST_F(BatchSharingTest, DropsResultsThatComeTwice) {
  std::size_t copies = 0;
  run_first_elsewhere([this, &copies](std::size_t /*round*/) {
    std::vector<FakeBroker::Kept>& results = broker_.results["a"];
    if (results.empty() || ++copies > 30) return;
    results.push_back({++broker_.last_id, results.front().message});
  });
  expect_each_once(homes_[0]);
  EXPECT_EQ(job_of(homes_[0])->counts.completed + job_of(homes_[0])->counts.failed, kLines);
  EXPECT_GT(homes_[0].process->metrics.duplicates.value(), 0u);
}

TEST_F(BatchSharingTest, AnswersALineThatNoNodeSurvivesWithAnError) {
  run_first_elsewhere([this](std::size_t /*round*/) {
    for (FakeBroker::Entry& line : broker_.lines) {
      if (line.key.line == 100) line.deliveries = ForeignLines::kLossesMost;
    }
  });
  const std::string errors = homes_[0].folder->read("file-erra.bytes", 1 << 24).value();
  EXPECT_EQ(count(errors, "\"<99>\""), 1u);
  EXPECT_EQ(count(errors, "server_error"), 1u);
  EXPECT_EQ(runs_, kLines - 1);
}

TEST_F(BatchSharingTest, WithdrawsTheLinesOfABatchThatIsCancelled) {
  homes_.reserve(1);
  add_home("a", 0);
  std::size_t sent = 0;
  run(run_first([this, &sent](std::size_t round) {
    if (round != 50) return;
    sent = broker_.lines.size();
    const BatchJobPtr job = job_of(homes_[0]);
    homes_[0].process->store.set_status(*job, BatchStatus::cancelling);
    homes_[0].process->runner.cancel(job);
  }));
  EXPECT_EQ(job_of(homes_[0])->status, BatchStatus::cancelled);
  EXPECT_EQ(sent, kLines);
  homes_[0].process->take_turn();
  EXPECT_TRUE(broker_.lines.empty());
}

}  // namespace
}  // namespace chasqui
