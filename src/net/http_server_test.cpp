#include "net/http_server.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "net/fake_client.h"
#include "net/fake_server.h"

namespace chasqui::net {
namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string get(std::string_view path, std::string_view headers = {}) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n";
}
std::string post(std::string_view headers, std::string_view body = {}) {
  return "POST /echo HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

class HttpServerTest : public testing::Test {
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
  FakeClient client() { return FakeClient(server_->port()); }
  void drain(Duration limit) {
    server_->loop().post([this, limit] {
      server_->server().drain(server_->loop().now() + limit, [this] { server_->report("drained"); });
      server_->report("draining");
    });
  }

  std::optional<FakeServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersAndKeepsAlive) {
  start();
  FakeClient c = client();
  for (int i = 0; i < 3; ++i) {
    c.send(get("/health"));
    const std::string response = c.read_response();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK\r\nServer: test\r\n")) << response;
    EXPECT_TRUE(contains(response, "X-Request-Id: r1\r\n"));
    EXPECT_TRUE(contains(response, "Date: "));
    EXPECT_FALSE(contains(response, "Connection"));
    EXPECT_TRUE(response.ends_with("\r\n\r\nok"));
  }
  EXPECT_EQ(server_->metrics().connections_accepted.value(), 1u);
  EXPECT_EQ(server_->metrics().responses[1].value(), 3u);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  FakeClient c = client();
  c.send(post("Content-Length: 3\r\n", "one") + get("/health") + post("Content-Length: 3\r\n", "two"));
  EXPECT_TRUE(c.read_response().ends_with("one"));
  EXPECT_TRUE(c.read_response().ends_with("ok"));
  EXPECT_TRUE(c.read_response().ends_with("two"));
}

TEST_F(HttpServerTest, GivesOthersTheirTurnBetweenPipelinedRequests) {
  HttpLimits limits;
  limits.turn_time = Duration::zero();
  start(limits);
  constexpr std::uint64_t kRequests = 400;
  std::uint64_t seen = 0;
  std::uint64_t most = 0;  // answered in one turn
  std::function<void()> look = [&] {
    const std::uint64_t now = server_->metrics().responses[1].value();
    most = std::max(most, now - seen);
    seen = now;
    if (now == kRequests) return server_->report("all answered");
    server_->loop().post(look);
  };
  server_->loop().post(look);
  std::string all;
  for (std::uint64_t i = 0; i < kRequests; ++i) all += get("/health");
  FakeClient c = client();
  c.send(all);
  while (server_->next_event() != "all answered") {
  }
  EXPECT_LE(most, 2u);
}

TEST_F(HttpServerTest, TakesRequestsInPieces) {
  start();
  FakeClient c = client();
  for (const char byte : post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")) c.send({&byte, 1});
  EXPECT_TRUE(c.read_response().ends_with("\r\n\r\nabcde"));
}

TEST_F(HttpServerTest, TakesLargeBodies) {
  start();
  FakeClient c = client();
  const std::string body(5'000'000, 'b');
  std::thread sender([&] { c.send(post("Content-Length: 5000000\r\n", body)); });
  const std::string response = c.read_response();
  sender.join();
  EXPECT_TRUE(response.ends_with(body));
}

TEST_F(HttpServerTest, AnswersHeadWithoutBody) {
  start();
  FakeClient c = client();
  c.send("HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n" + get("/health"));
  const std::string head = c.read_until("\r\n\r\n");
  EXPECT_TRUE(contains(head, "Content-Length: 2\r\n"));
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, Continues) {
  start();
  FakeClient c = client();
  c.send(post("Expect: 100-continue\r\nContent-Length: 4\r\n"));
  EXPECT_EQ(c.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  c.send("abcd");
  EXPECT_TRUE(c.read_response().ends_with("abcd"));
}

TEST_F(HttpServerTest, RefusesBeforeTheBody) {
  HttpLimits limits;
  limits.body_bytes = 10;
  start(limits);
  for (const std::string_view extra : {"", "Expect: 100-continue\r\n"}) {
    FakeClient c = client();
    c.send(post(std::string(extra) + "Content-Length: 11\r\n"));
    const std::string response = c.read_response();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 413 Content Too Large\r\n")) << response;
    EXPECT_TRUE(contains(response, "Connection: close\r\n"));
    EXPECT_TRUE(c.at_end());
  }
}

TEST_F(HttpServerTest, ARefusedClientCanReadWhyWhileItSends) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  start(limits);
  FakeClient c = client();
  c.send(post("Transfer-Encoding: chunked\r\n", "100000\r\n" + std::string(0x100000, 'x')));
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, RefusesUnknownPathsAndMethods) {
  start();
  FakeClient c = client();
  c.send(get("/none") + "DELETE /health HTTP/1.1\r\nHost: x\r\n\r\n" + get("/health"));
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 404"));
  const std::string response = c.read_response();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(contains(response, "Allow: GET, HEAD\r\n"));
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 200"));  // neither had a body: the connection goes on
}

TEST_F(HttpServerTest, AsksTheGateBeforeTheBody) {
  start();
  server_->on_loop([this] {
    server_->router().set_gate([](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.header("Authorization")) return std::nullopt;
      return plain_error(401, "who are you?");
    });
  });
  FakeClient c = client();
  c.send(post("Content-Length: 1000\r\n"));
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 401"));
  EXPECT_TRUE(c.at_end());
  FakeClient known = client();
  known.send(post("Authorization: me\r\nContent-Length: 2\r\n", "hi"));
  EXPECT_TRUE(known.read_response().ends_with("hi"));
}

TEST_F(HttpServerTest, ReportsMalformedRequests) {
  start();
  FakeClient c = client();
  c.send("GET / HTTP/1.1\nHost: x\n\n");
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(c.at_end());
  EXPECT_EQ(server_->metrics().requests_refused.value(), 1u);
}

TEST_F(HttpServerTest, LimitsTheTimeOfHeaderBodyAndSilence) {
  HttpLimits limits;
  limits.header_time = limits.body_time = limits.keep_alive_time = milliseconds(60);
  start(limits);
  FakeClient header = client(), body = client(), silent = client();
  header.send("GET /health HT");
  body.send(post("Content-Length: 10\r\n", "abc"));
  EXPECT_TRUE(header.read_response().starts_with("HTTP/1.1 408"));
  EXPECT_TRUE(header.at_end());
  EXPECT_TRUE(body.read_response().starts_with("HTTP/1.1 408"));
  EXPECT_TRUE(silent.at_end());
  EXPECT_EQ(server_->metrics().timeouts_header.value(), 1u);
  EXPECT_EQ(server_->metrics().timeouts_body.value(), 1u);
  EXPECT_EQ(server_->metrics().timeouts_idle.value(), 1u);
}

TEST_F(HttpServerTest, LimitsTheMemoryOfAllBodies) {
  HttpLimits limits;
  limits.bodies_bytes = 1000;
  start(limits);
  FakeClient first = client(), second = client();
  first.send(post("Content-Length: 900\r\nExpect: 100-continue\r\n"));
  EXPECT_TRUE(first.read_until("\r\n\r\n").starts_with("HTTP/1.1 100"));
  first.send(std::string(800, 'a'));
  second.send(post("Content-Length: 500\r\n", std::string(500, 'b')));
  const std::string response = second.read_response();
  // Which of the two came first is the kernel's choice; together they are too many.
  first.send(std::string(100, 'a'));
  const std::string other = first.read_response();
  const std::string& refused = response.starts_with("HTTP/1.1 503") ? response : other;
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(contains(refused, "Retry-After: 1\r\n"));
}

TEST_F(HttpServerTest, ABodyThatStandsStillMakesRoomForOthers) {
  HttpLimits limits;
  limits.bodies_bytes = 1000;
  limits.body_fresh_time = Duration::zero();
  start(limits);
  FakeClient still = client(), other = client();
  still.send(post("Content-Length: 950\r\n", std::string(800, 'a')));
  while (server_->metrics().body_bytes.value() < 800) std::this_thread::yield();
  other.send(post("Content-Length: 900\r\n", std::string(900, 'b')));
  EXPECT_TRUE(other.read_response().starts_with("HTTP/1.1 200"));
  const std::string refused = still.read_response();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(contains(refused, "Retry-After: 1\r\n"));
  EXPECT_TRUE(still.at_end());
}

TEST_F(HttpServerTest, ABodyThatWasReadTakesNoRoomWhileItsAnswerIsMade) {
  HttpLimits limits;
  limits.bodies_bytes = 1000;
  start(limits);
  FakeClient waiting = client(), other = client();
  waiting.send("POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n" + std::string(900, 'a'));
  ASSERT_EQ(server_->next_event(), "read");
  other.send(post("Content-Length: 900\r\n", std::string(900, 'b')));
  EXPECT_TRUE(other.read_response().starts_with("HTTP/1.1 200"));
  server_->go();
  EXPECT_TRUE(waiting.read_response().ends_with("read"));
}

TEST_F(HttpServerTest, WhatFollowsABodyThatHadNoRoomIsNoRequest) {
  HttpLimits limits;
  limits.bodies_bytes = 1000;
  start(limits);
  FakeClient c = client();
  c.send(post("Content-Length: 5000\r\n", std::string(1500, 'a')));
  const std::string refused = c.read_response();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(contains(refused, "Connection: close\r\n"));
  c.send(get("/health"));
  EXPECT_EQ(c.read_to_end(), "");
}

TEST_F(HttpServerTest, SpeaksHttp10) {
  start();
  FakeClient closing = client(), keeping = client();
  closing.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(contains(closing.read_response(), "Connection: close\r\n"));
  EXPECT_TRUE(closing.at_end());
  keeping.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(contains(keeping.read_response(), "Connection: keep-alive\r\n"));
  keeping.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(keeping.read_response().ends_with("ok"));
}

TEST_F(HttpServerTest, MakesA500OfHandlersThatFail) {
  start();
  FakeClient c = client();
  c.send(get("/throw") + get("/nothing") + get("/broken"));
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 500"));
  EXPECT_TRUE(c.read_response().starts_with("HTTP/1.1 500"));
  EXPECT_TRUE(c.read_to_end().ends_with("4\r\nhalf\r\n"));
  EXPECT_EQ(server_->metrics().lost_exceptions.value(), 1u);
}

TEST_F(HttpServerTest, DrainsAndAnnouncesIt) {
  start();
  FakeClient idle = client(), running = client();
  idle.send(get("/health"));
  idle.read_response();
  running.send(get("/wait"));
  ASSERT_EQ(server_->next_event(), "waiting");
  drain(seconds(10));
  ASSERT_EQ(server_->next_event(), "draining");
  EXPECT_TRUE(idle.at_end());
  EXPECT_FALSE(client().connected());
  server_->go();
  EXPECT_TRUE(contains(running.read_response(), "Connection: close\r\n"));
  EXPECT_EQ(server_->next_event(), "sent");
  EXPECT_TRUE(running.at_end());
  running.close();
  EXPECT_EQ(server_->next_event(), "drained");
}

TEST_F(HttpServerTest, ALineEndBehindABodyKeepsNoDrainWaiting) {
  start();
  FakeClient c = client();
  c.send(post("Content-Length: 3\r\n", "one\r\n"));
  EXPECT_TRUE(c.read_response().ends_with("one"));
  drain(seconds(600));
  ASSERT_EQ(server_->next_event(), "draining");
  EXPECT_TRUE(c.at_end());
  EXPECT_EQ(server_->next_event(), "drained");
}

TEST_F(HttpServerTest, DrainEndsAtItsDeadline) {
  start();
  FakeClient running = client();
  running.send(get("/wait"));
  ASSERT_EQ(server_->next_event(), "waiting");
  drain(milliseconds(20));
  EXPECT_EQ(server_->next_event(), "draining");
  EXPECT_EQ(server_->next_event(), "gone");
  EXPECT_EQ(server_->next_event(), "not sent");
  EXPECT_EQ(server_->next_event(), "drained");
  EXPECT_TRUE(running.at_end());
}

TEST_F(HttpServerTest, DrainsAnEmptyServerAtOnce) {
  start();
  drain(seconds(10));
  EXPECT_EQ(server_->next_event(), "draining");
  EXPECT_EQ(server_->next_event(), "drained");
}

TEST_F(HttpServerTest, PausesAtTheConnectionCap) {
  HttpLimits limits;
  limits.connections = 2;
  start(limits);
  FakeClient first = client(), second = client();
  for (FakeClient* c : {&first, &second}) {
    c->send(get("/health"));
    EXPECT_TRUE(c->read_response().ends_with("ok"));
  }
  FakeClient third = client();  // connected by the kernel, not by us
  third.send(get("/health"));
  server_->on_loop([this] { EXPECT_EQ(server_->server().connections(), 2u); });
  first.close();
  EXPECT_TRUE(third.read_response().ends_with("ok"));
  EXPECT_EQ(server_->metrics().connections_accepted.value(), 3u);
  EXPECT_GE(server_->metrics().accept_pauses.value(), 1u);
}

TEST_F(HttpServerTest, NamesItsPeers) {
  start();
  FakeClient c = client();
  c.send(get("/peer"));
  const std::string response = c.read_response();
  EXPECT_TRUE(contains(response, "\r\n\r\n127.0.0.1:")) << response;
  EXPECT_TRUE(response.ends_with(" loopback"));
}

}  // namespace
}  // namespace chasqui::net
