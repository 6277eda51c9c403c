#include "net/exchange.h"

#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "net/fake_client.h"
#include "net/fake_server.h"

namespace chasqui::net {
namespace {

constexpr std::string_view kWait = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::string_view kStream = "GET /stream/3 HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::string_view kHealth = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

class ExchangeTest : public testing::Test {
 protected:
  void start(const HttpLimits& limits = {}) {
    server_.emplace(limits);
    thread_ = std::thread([this] { server_->loop().run(); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    server_->loop().stop();
    thread_.join();
  }
  FakeClient waiting_client() {
    FakeClient client(server_->port());
    client.send(kWait);
    EXPECT_EQ(server_->next_event(), "waiting");
    return client;
  }
  void expect_gone() {
    EXPECT_EQ(server_->next_event(), "gone");
    EXPECT_EQ(server_->next_event(), "not sent");
  }

  std::optional<FakeServer> server_;
  std::thread thread_;
};

TEST_F(ExchangeTest, StreamsChunkByChunk) {
  start();
  FakeClient client(server_->port());
  client.send(kStream);
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  for (const char* chunk : {"9\r\ndata: 0\n\n\r\n", "9\r\ndata: 1\n\n\r\n"}) {
    server_->go();
    EXPECT_EQ(client.read(14), chunk);
  }
  server_->go();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "9\r\ndata: 2\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(server_->next_event(), "sent");
  client.send(kHealth);
  EXPECT_TRUE(client.read_response().ends_with("ok"));
}

TEST_F(ExchangeTest, StreamsToHttp10UntilTheEnd) {
  start();
  FakeClient client(server_->port());
  client.send("GET /stream/1 HTTP/1.0\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos);
  EXPECT_NE(head.find("Connection: close\r\n"), std::string::npos);
  server_->go();
  EXPECT_EQ(client.read_to_end(), "data: 0\n\ndata: [DONE]\n\n");
}

TEST_F(ExchangeTest, StreamsNothingToHead) {
  start();
  FakeClient client(server_->port());
  client.send("HEAD /stream/0 HTTP/1.1\r\nHost: x\r\n\r\n");
  client.read_until("\r\n\r\n");
  client.send(kHealth);
  EXPECT_TRUE(client.read_response().starts_with("HTTP/1.1 200 OK"));
}

TEST_F(ExchangeTest, NoticesAClose) {
  start();
  FakeClient client = waiting_client();
  client.close();
  expect_gone();
}

TEST_F(ExchangeTest, NoticesAReset) {
  start();
  FakeClient client = waiting_client();
  client.reset();
  expect_gone();
}

TEST_F(ExchangeTest, TakesAHalfCloseForALeave) {
  start();
  FakeClient client = waiting_client();
  client.half_close();
  expect_gone();
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(server_->metrics().clients_gone.value(), 1u);
}

TEST_F(ExchangeTest, NoticesALeaveInsideAStream) {
  start();
  FakeClient client(server_->port());
  client.send(kStream);
  client.read_until("\r\n\r\n");
  server_->go();
  client.read(14);
  client.close();
  expect_gone();
}

TEST_F(ExchangeTest, NoticesALeaveBehindPipelinedRequests) {
  start();
  FakeClient client = waiting_client();
  client.send(kHealth);
  client.send(kHealth);
  client.close();
  expect_gone();
}

TEST_F(ExchangeTest, AnswersWhatCameDuringAnExchange) {
  start();
  FakeClient client = waiting_client();
  client.send(kHealth);
  server_->on_loop([] {});  // another turn: the watch may read ahead
  client.send(kHealth);
  server_->go();
  EXPECT_TRUE(client.read_response().ends_with("waited"));
  EXPECT_TRUE(client.read_response().ends_with("ok"));
  EXPECT_TRUE(client.read_response().ends_with("ok"));
}

TEST_F(ExchangeTest, NoticesALeaveBehindMoreThanItReadsAhead) {
  HttpLimits limits;
  limits.pipelined_bytes = 100;
  start(limits);
  FakeClient client = waiting_client();
  client.send(std::string(5000, 'x'));
  server_->on_loop([] {});
  client.close();
  expect_gone();
}

TEST_F(ExchangeTest, CutsAClientThatDoesNotRead) {
  HttpLimits limits;
  limits.write_time = milliseconds(60);
  start(limits);
  FakeClient client(server_->port(), 4096);
  client.send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(server_->next_event(), "gone, unsent");
  EXPECT_EQ(server_->next_event(), "flood over");
  EXPECT_EQ(server_->metrics().timeouts_write.value(), 1u);
  EXPECT_LE(server_->metrics().bytes_out.value(), 512u * 1024);  // and cost no more than the kernel may hold
}

TEST_F(ExchangeTest, WhatTheKernelDidNotTakeAtOnceLeavesBeforeWhatIsSaidNext) {
  start();
  FakeClient client(server_->port(), 4096);
  client.send("GET /hasty HTTP/1.0\r\n\r\n");
  EXPECT_EQ(server_->next_event(), "full");
  server_->go();
  client.read_until("\r\n\r\n");
  const std::string body = client.read_to_end();
  const std::string said = server_->next_event();
  ASSERT_TRUE(said.starts_with("sent ")) << said;
  const int lines = std::stoi(said.substr(5));
  std::string expected;
  for (int i = 0; i < lines; ++i) expected += FakeServer::line(i);
  EXPECT_TRUE(body == expected + "end") << body.size() << " bytes for " << lines << " lines";
}

TEST_F(ExchangeTest, WhoCannotWaitIsToldThatTheClientIsGone) {
  start();
  FakeClient client(server_->port(), 4096);
  client.send("GET /hasty HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(server_->next_event(), "full");
  client.reset();
  server_->on_loop([] {});
  server_->go();
  EXPECT_TRUE(server_->next_event().starts_with("not sent"));
}

TEST_F(ExchangeTest, NoticesALeaveDuringAPendingWrite) {
  start();
  FakeClient client(server_->port(), 4096);
  client.send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
  client.read(100'000);
  client.close();
  EXPECT_TRUE(server_->next_event().starts_with("gone"));
  EXPECT_EQ(server_->next_event(), "flood over");
}

TEST_F(ExchangeTest, OneFastClientDoesNotStopTheOthers) {
  start();
  FakeClient greedy(server_->port());
  greedy.send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
  std::thread reader([&] { greedy.read_until("never"); });
  FakeClient other(server_->port());
  other.send(kHealth);
  EXPECT_TRUE(other.read_response().ends_with("ok"));
  server_->on_loop([this] { server_->server().drain(server_->loop().now(), [] {}); });
  reader.join();
}

}  // namespace
}  // namespace chasqui::net
