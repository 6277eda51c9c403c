#include "net/frame_server.h"

#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mailbox.h"
#include "net/event_signal.h"
#include "net/fake_client.h"

namespace chasqui::net {
namespace {

std::string frame_of(std::string_view body) {
  std::string out;
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(body.size() >> shift & 0xff);
  return out.append(body);
}

// Says back what it hears; "flood" is answered without an end, "hold" not at all, "big" by 10,000 bytes, and "most" by
// the most that has waited to be sent. What begins with "turn" is not answered, but told to the test.
class Echo final : public FrameHandler {
 public:
  Echo(FrameConnection& connection, Mailbox<std::string>& happened) : connection_(connection), happened_(happened) {}

  Awaitable<void> frame(std::string body) override {
    if (body == "flood") {
      connection_.loop().spawn(flood(FrameConnection::Busy(connection_)), "flood");
      co_return;
    }
    if (body == "hold") {
      connection_.loop().spawn(hold(FrameConnection::Busy(connection_)), "hold");
      co_return;
    }
    if (body.starts_with("keep")) {
      std::optional<FrameConnection::Held> held = connection_.hold(body.size());
      connection_.outgoing() += frame_of(held ? "kept" : "full");
      connection_.send();
      if (held) kept_.push_back(std::move(*held));
      co_return;
    }
    if (body.starts_with("turn")) {
      happened_.push(std::move(body));
      co_return;
    }
    if (body == "most") body = std::to_string(most_);
    connection_.outgoing() += body == "big" ? frame_of(std::string(10'000, 'x')) : frame_of(body);
    connection_.send();
    most_ = std::max(most_, connection_.outgoing().size());
  }
  Awaitable<void> line(std::string text) override {
    connection_.outgoing() += text + '\n';
    connection_.send();
    co_return;
  }
  void broken(const Error& error) override {
    connection_.outgoing() += frame_of(name(error.code));
    connection_.send();
  }
  void gone() override {
    happened_.push("gone");
    gone_.notify();
  }

 private:
  Awaitable<void> flood([[maybe_unused]] FrameConnection::Busy busy) {
    const std::string block = frame_of(std::string(10'000, 'x'));
    while (!connection_.gone()) {
      connection_.outgoing() += block;
      connection_.send();
      most_ = std::max(most_, connection_.outgoing().size());
      co_await asio::post(connection_.loop().executor(), kAwait);
    }
    happened_.push("flooded " + std::to_string(most_ / 1000));
  }

  Awaitable<void> hold([[maybe_unused]] FrameConnection::Busy busy) { co_await gone_.wait(); }

  FrameConnection& connection_;
  Mailbox<std::string>& happened_;
  EventSignal gone_{connection_.loop()};
  std::vector<FrameConnection::Held> kept_;  // until the connection ends
  std::size_t most_ = 0;
};

class FrameServerTest : public testing::Test {
 protected:
  void begin(FrameLimits limits = {}, bool runs = true) {
    server_ = std::make_unique<FrameServer>(loop_, metrics_, limits, [this](FrameConnection& connection) {
      return std::make_unique<Echo>(connection, happened_);
    });
    ASSERT_TRUE(server_->listen(ListenAddress::unix_socket(path_)));
    if (runs) run();
  }
  void run() {
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    loop_.post([this] { server_->drain(loop_.now(), [this] { loop_.stop(); }); });
    thread_.join();
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_EQ(metrics_.connections_open.value(), 0);
    EXPECT_EQ(metrics_.incomplete_bytes.value(), 0);
  }
  std::string next_event() {
    while (read_ == events_.size()) {
      read_ = 0;
      happened_.drain(events_, Wait::yes);
    }
    return events_[read_++];
  }

  NetMetrics net_metrics_;
  FrameMetrics metrics_;
  EventLoop loop_{net_metrics_};
  Mailbox<std::string> happened_{1000};
  const std::string path_ = testing::TempDir() + "frame_server_test_" + std::to_string(::getpid()) + ".sock";
  std::unique_ptr<FrameServer> server_;
  std::thread thread_;
  std::vector<std::string> events_;
  std::size_t read_ = 0;
};

TEST_F(FrameServerTest, answers_frames_that_come_in_one_write_and_byte_by_byte) {
  begin();
  FakeClient client(path_);
  const std::string three = frame_of("one") + frame_of("") + frame_of(std::string(100'000, 'y'));
  client.send(three);
  EXPECT_EQ(client.read(three.size()), three);
  for (const char c : frame_of("slow")) client.send(std::string(1, c));
  EXPECT_EQ(client.read(8), frame_of("slow"));
}

TEST_F(FrameServerTest, cuts_a_client_that_does_not_read_at_its_cap_and_no_other) {
  FrameLimits limits;
  limits.unsent_bytes = 50'000;
  begin(limits);
  FakeClient other(path_);
  FakeClient client(path_);
  client.send(frame_of("flood"));
  EXPECT_EQ(next_event(), "gone");
  // The cap, and the block that went over it; what the kernel took beside that is the kernel's.
  const std::string flooded = next_event();
  EXPECT_LE(std::stoi(flooded.substr(8)), 61) << flooded;
  EXPECT_EQ(metrics_.cut.value(), 1u);
  other.send(frame_of("still here"));
  EXPECT_EQ(other.read(14), frame_of("still here"));
}

TEST_F(FrameServerTest, lets_messages_wait_while_their_answers_are_not_read) {
  FrameLimits limits;
  limits.unsent_bytes = 50'000;
  begin(limits);
  FakeClient client(path_);
  std::string all;
  for (int i = 0; i < 100; ++i) all += frame_of("big");
  client.send(all);
  EXPECT_EQ(client.read(100 * 10'004).size(), 100u * 10'004);
  client.send(frame_of("most"));
  EXPECT_LE(std::stoi(client.read(9).substr(4)), 50'000);
  EXPECT_EQ(metrics_.cut.value(), 0u);
}

TEST_F(FrameServerTest, gives_connections_their_turns_one_message_after_the_other) {
  FrameLimits limits;
  limits.turn_time = Duration::zero();
  begin(limits, false);
  constexpr int kEach = 50;
  FakeClient first(path_);
  FakeClient second(path_);
  for (FakeClient* const client : {&first, &second}) {
    std::string all;
    for (int i = 0; i < kEach; ++i) all += frame_of(client == &first ? "turn 1" : "turn 2");
    client->send(all);
  }
  run();
  std::string order;
  for (int i = 0; i < 2 * kEach; ++i) order += next_event().back();
  const std::string both = order.substr(order.find(order.front() == '1' ? '2' : '1'));
  const std::string alternate = both.substr(0, kEach);
  EXPECT_EQ(alternate.find("11"), std::string::npos) << order;
  EXPECT_EQ(alternate.find("22"), std::string::npos) << order;
}

TEST_F(FrameServerTest, says_why_before_it_closes_a_connection_that_broke_a_limit) {
  FrameLimits limits;
  limits.frame_bytes = 10;
  begin(limits);
  FakeClient client(path_);
  client.send(frame_of("good") + frame_of("far too long"));
  EXPECT_EQ(client.read_to_end(), frame_of("good") + frame_of("too_large"));
  EXPECT_EQ(next_event(), "gone");
}

TEST_F(FrameServerTest, ends_a_message_that_takes_too_long) {
  FrameLimits limits;
  limits.frame_time = milliseconds(20);
  begin(limits);
  FakeClient client(path_);
  client.send(frame_of("never finished").substr(0, 7));
  EXPECT_EQ(client.read_to_end(), frame_of("invalid_request"));
}

TEST_F(FrameServerTest, takes_a_short_line_for_one_when_nothing_follows) {
  FrameLimits limits;
  limits.settle_time = milliseconds(5);
  begin(limits);
  FakeClient client(path_);
  client.send("a\n");
  EXPECT_EQ(client.read(2), "a\n");
  client.send("and more\nb\n");
  EXPECT_EQ(client.read(11), "and more\nb\n");
}

TEST_F(FrameServerTest, bounds_the_incomplete_messages_of_all_connections_together) {
  FrameLimits limits;
  limits.incomplete_bytes = 100'000;
  limits.fresh_time = Duration::zero();
  begin(limits);
  FakeClient first(path_);
  FakeClient second(path_);
  const std::string large = frame_of(std::string(90'000, 'b'));
  first.send(frame_of(std::string(200'000, 'a')).substr(0, 90'000));
  while (metrics_.incomplete_bytes.value() < 89'000) std::this_thread::yield();
  second.send(large);
  EXPECT_EQ(first.read_to_end(), frame_of("overloaded")) << "it has held most for longest";
  EXPECT_EQ(second.read(large.size()), large);
}

TEST_F(FrameServerTest, ends_messages_one_by_one_while_they_hold_too_much_and_none_of_them_for_long) {
  FrameLimits limits;
  limits.incomplete_bytes = 100'000;
  limits.fresh_time = limits.frame_time = seconds(3600);
  begin(limits);
  FakeClient first(path_);
  FakeClient second(path_);
  const std::string one = frame_of(std::string(95'000, 'a'));
  const std::string two = frame_of(std::string(95'000, 'b'));
  first.send(one.substr(0, 90'000));
  while (metrics_.incomplete_bytes.value() < 89'000) std::this_thread::yield();
  second.send(two.substr(0, 80'000));
  while (metrics_.incomplete_bytes.value() < 100'000) std::this_thread::yield();
  FakeClient third(path_);
  third.send(frame_of("short"));
  EXPECT_EQ(third.read(9), frame_of("short")) << "short messages are not held up";
  second.send(two.substr(80'000));
  EXPECT_EQ(second.read(two.size()), two) << "one of them always goes on";
  first.send(one.substr(90'000));
  EXPECT_EQ(first.read(one.size()), one);
}

// While a model loads, say, whole requests wait in memory.
TEST_F(FrameServerTest, bounds_what_has_come_and_waits_as_well) {
  FrameLimits limits;
  limits.incomplete_bytes = 100'000;
  begin(limits);
  const auto keep = [](std::size_t bytes) { return frame_of("keep" + std::string(bytes - 4, 'x')); };
  const auto answer = [](FakeClient& client) { return client.read(frame_of("kept").size()); };
  FakeClient first(path_);
  FakeClient second(path_);
  first.send(keep(60'000));
  EXPECT_EQ(answer(first), frame_of("kept"));
  second.send(keep(50'000));
  EXPECT_EQ(answer(second), frame_of("full"));
  first.send(keep(40'000));
  EXPECT_EQ(answer(first), frame_of("kept")) << "all that there is";
  EXPECT_EQ(metrics_.incomplete_bytes.value(), 100'000);
  second.send(keep(8'000));
  EXPECT_EQ(answer(second), frame_of("kept")) << "short ones have an eighth more";
  second.send(keep(8'000));
  EXPECT_EQ(answer(second), frame_of("full"));
  second.send(frame_of("x"));
  EXPECT_EQ(second.read(5), frame_of("x")) << "what waits for nothing is not held up";
  first.close();
  while (metrics_.incomplete_bytes.value() > 8'000) std::this_thread::yield();
  second.send(keep(50'000));
  EXPECT_EQ(answer(second), frame_of("kept"));
}

TEST_F(FrameServerTest, answers_a_client_that_has_said_everything_and_then_closes) {
  begin();
  FakeClient client(path_);
  client.send(frame_of("x") + frame_of("half").substr(0, 6));
  client.half_close();
  EXPECT_EQ(client.read_to_end(), frame_of("x"));
  FakeClient lines(path_);
  lines.send("one\ntwo");
  lines.half_close();
  EXPECT_EQ(lines.read_to_end(), "one\ntwo\n");
}

TEST_F(FrameServerTest, notices_a_client_that_leaves_while_its_request_runs) {
  begin();
  FakeClient client(path_);
  client.send(frame_of("hold") + frame_of("x"));
  EXPECT_EQ(client.read(5), frame_of("x"));
  client.close();
  EXPECT_EQ(next_event(), "gone");
}

}  // namespace
}  // namespace chasqui::net
