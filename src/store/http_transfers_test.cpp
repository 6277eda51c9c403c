#include "store/http_transfers.h"

#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "net/fake_server.h"
#include "store/fake_exchanges.h"

namespace chasqui::store {
namespace {

// What is asked, against a real server on a thread of its own.
class HttpTransfersTest : public testing::Test {
 protected:
  HttpTransfersTest() {
    server_.router().add(net::HttpMethod::get, "/redirect", [this](auto& exchange) { return redirect(exchange); });
    server_.router().add(net::HttpMethod::get, "/busy/{times}",
                         [this](auto& exchange) { return answer_after(exchange, 503); });
    server_.router().add(net::HttpMethod::get, "/failing/{times}",
                         [this](auto& exchange) { return answer_after(exchange, 500); });
    server_.router().add(net::HttpMethod::get, "/headers", [this](auto& exchange) { return headers(exchange); });
    server_.router().add(net::HttpMethod::get, "/refusal", [this](auto& exchange) { return refusal(exchange); });
    server_.router().add(net::HttpMethod::put, "/echo", [this](auto& exchange) { return echo(exchange); });
    thread_ = std::thread([this] { server_.loop().run(); });
  }
  ~HttpTransfersTest() override {
    server_.go();
    server_.loop().stop();
    thread_.join();
  }

  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(server_.port()) + path; }
  HttpAnswer run(HttpTransfers::Settings settings, const HttpCall& call) {
    auto transfers = HttpTransfers::open(std::move(settings));
    EXPECT_TRUE(transfers);
    return (*transfers)->run({&call, 1}).front();
  }
  static HttpTransfers::Settings basic() {
    return {.patience = seconds(20), .user = "user", .password = "secret", .signing = {}, .session_token = {}};
  }
  static HttpTransfers::Settings patience(Duration time) {
    return {.patience = time, .user = {}, .password = {}, .signing = {}, .session_token = {}};
  }

  net::Awaitable<void> redirect(net::HttpExchange& exchange) {
    exchange.add_response_header("Location", url("/health"));
    co_await exchange.respond(net::HttpResponse(307, "text/plain", "elsewhere"));
  }
  // So often this status, then 200.
  net::Awaitable<void> answer_after(net::HttpExchange& exchange, int status) {
    const int times = std::stoi(exchange.param("times"));
    if (++asked_ > times) {
      co_await exchange.respond(net::HttpResponse(200, "text/plain", "done"));
    } else {
      co_await exchange.respond(net::HttpResponse(status, "text/plain", "later"));
    }
  }
  net::Awaitable<void> headers(net::HttpExchange& exchange) {
    std::string text;
    for (const char* header : {"Authorization", "X-Amz-Security-Token", "Expect", "X-Amz-Content-Sha256"}) {
      text += std::string(exchange.request().header(header).value_or("-")) + '\n';
    }
    co_await exchange.respond(net::HttpResponse(200, "text/plain", std::move(text)));
  }
  net::Awaitable<void> refusal(net::HttpExchange& exchange) {
    co_await exchange.respond(net::HttpResponse(404, "text/plain", std::string(100'000, 'x')));
  }
  net::Awaitable<void> echo(net::HttpExchange& exchange) {
    std::string text(exchange.request().header("Content-Type").value_or("-"));
    text += exchange.request().body;
    co_await exchange.respond(net::HttpResponse(201, "text/plain", std::move(text)));
  }

  net::FakeServer server_;
  std::thread thread_;
  int asked_ = 0;  // the loop's
};

TEST_F(HttpTransfersTest, SendsBodiesAndAnswersInTheirOrder) {
  auto transfers = HttpTransfers::open(patience(seconds(20)));
  ASSERT_TRUE(transfers);
  std::vector<std::vector<std::byte>> bodies;
  for (std::size_t i = 0; i < 30; ++i)
    bodies.push_back(fake_bytes(std::string(i * 5000, static_cast<char>('a' + i % 26))));
  std::vector<HttpCall> calls;
  for (const auto& body : bodies) calls.push_back({"PUT", url("/echo"), {"Content-Type: x/y"}, body, 1 << 20});
  for (int round = 0; round < 2; ++round) {
    const auto answers = (*transfers)->run(calls);
    ASSERT_EQ(answers.size(), calls.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].status, 201) << answers[i].why;
      EXPECT_EQ(answers[i].text().substr(3), std::string(i * 5000, static_cast<char>('a' + i % 26)));
    }
  }
  EXPECT_TRUE((*transfers)->run({}).empty());
}

TEST_F(HttpTransfersTest, FollowsNoRedirect) {
  const HttpAnswer answer = run(basic(), {"GET", url("/redirect")});
  EXPECT_EQ(answer.status, 307);
  EXPECT_EQ(answer.text(), "elsewhere");
}

TEST_F(HttpTransfersTest, TriesTwiceMoreWhereItIsOverloaded) {
  EXPECT_EQ(run(basic(), {"GET", url("/busy/2")}).text(), "done");
  asked_ = 0;
  EXPECT_EQ(run(basic(), {"GET", url("/busy/3")}).status, 503);
  EXPECT_EQ(asked_, 3);
  asked_ = 0;
  EXPECT_EQ(run(patience(milliseconds(50)), {"GET", url("/busy/1")}).status, 503);  // no pause fits into it
  EXPECT_EQ(asked_, 1);
}

TEST_F(HttpTransfersTest, TriesAgainWhereS3HasFailedAndNoOther) {
  EXPECT_EQ(run(basic(), {"GET", url("/failing/1")}).status, 500);
  EXPECT_EQ(asked_, 1);
  asked_ = 0;
  HttpTransfers::Settings settings = basic();
  settings.signing = "aws:amz:eu-west-1:s3";
  EXPECT_EQ(run(settings, {"GET", url("/failing/2")}).text(), "done");
}

TEST_F(HttpTransfersTest, TriesTwiceMoreWhereTheConnectionBreaks) {
  const HttpAnswer answer = run(basic(), {"GET", "http://127.0.0.1:1/"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.why, "");
}

TEST_F(HttpTransfersTest, HoldsNoMoreOfAnAnswerThanIsAllowed) {
  const auto body = fake_bytes(std::string(1000, 'x'));
  HttpCall call{"PUT", url("/echo"), {"Content-Type: x/y"}, body, 1003};
  EXPECT_EQ(run(basic(), call).body.size(), 1003u);
  call.most = 1002;
  const HttpAnswer announced = run(basic(), call);
  EXPECT_TRUE(announced.is_too_long);
  EXPECT_EQ(announced.status, 0);
  EXPECT_EQ(announced.why, "an answer that is too long");
  const HttpAnswer endless = run(basic(), {"GET", url("/flood"), {}, {}, 1 << 20});
  EXPECT_TRUE(endless.is_too_long);
  EXPECT_TRUE(endless.body.empty());
  const HttpAnswer refused = run(basic(), {"GET", url("/refusal")});
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.body.size(), 16u * 1024);
}

TEST_F(HttpTransfersTest, LeavesAServerThatSaysNothing) {
  const HttpAnswer answer = run(patience(milliseconds(200)), {"GET", url("/wait")});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.why, "nothing came in time");
  EXPECT_EQ(server_.next_event(), "waiting");
  EXPECT_EQ(server_.next_event(), "gone");
}

TEST_F(HttpTransfersTest, SendsCredentialsAsTheyAreSet) {
  EXPECT_EQ(run(patience(seconds(20)), {"GET", url("/headers")}).text(), "-\n-\n-\n-\n");
  EXPECT_EQ(run(basic(), {"GET", url("/headers")}).text(), "Basic dXNlcjpzZWNyZXQ=\n-\n-\n-\n");
  HttpTransfers::Settings settings = basic();
  settings.signing = "aws:amz:eu-west-1:s3";
  settings.session_token = "token";
  const HttpAnswer answer = run(settings, {"GET", url("/headers")});
  EXPECT_TRUE(answer.text().starts_with("AWS4-HMAC-SHA256 Credential=user/")) << answer.text();
  EXPECT_NE(answer.text().find("/eu-west-1/s3/aws4_request, SignedHeaders="), std::string::npos) << answer.text();
  EXPECT_NE(answer.text().find("x-amz-security-token"), std::string::npos) << answer.text();
  EXPECT_TRUE(answer.text().ends_with("\ntoken\n-\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"))
      << answer.text();
  EXPECT_EQ(answer.text().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace chasqui::store
