#include "net/http_parser.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

constexpr std::string_view kHost = "Host: x\r\n";

struct Outcome {
  int status = 0;  // 200: complete, 0: wants more, else the refusal
  std::size_t taken = 0;
  HttpRequest request;

  bool operator==(const Outcome& other) const {
    return status == other.status && request.body == other.request.body && request.target == other.request.target &&
           request.path == other.request.path && request.headers.size() == other.request.headers.size() &&
           request.keep_alive == other.request.keep_alive;
  }
};

Outcome parse(std::string_view text, std::size_t piece, const HttpLimits& limits = {}) {
  Outcome outcome;
  HttpParser parser(limits, outcome.request);
  while (outcome.taken < text.size()) {
    const std::size_t taken = parser.feed(text.substr(outcome.taken, piece));
    outcome.taken += taken;
    if (parser.state() == HttpParser::State::head_done) {
      parser.accept_body();
    } else if (taken == 0) {
      break;
    }
    if (parser.state() == HttpParser::State::complete || parser.state() == HttpParser::State::refused) break;
  }
  if (parser.state() == HttpParser::State::complete) outcome.status = 200;
  if (parser.state() == HttpParser::State::refused) outcome.status = parser.refusal().status;
  return outcome;
}

Outcome parse_whole(std::string_view text, const HttpLimits& limits = {}) {
  return parse(text, std::string_view::npos, limits);
}

struct Case {
  const char* name;
  std::string text;
  int status;
};

std::string post_with(std::string_view rest) { return "POST /p HTTP/1.1\r\n" + std::string(kHost) + std::string(rest); }
std::string get_with(std::string_view rest) { return "GET /p HTTP/1.1\r\n" + std::string(rest); }

std::vector<Case> framing_cases() {
  return {
      {"no body", post_with("\r\n"), 200},
      {"sized body", post_with("Content-Length: 4\r\n\r\nabcd"), 200},
      {"sized body, incomplete", post_with("Content-Length: 4\r\n\r\nabc"), 0},
      {"length zero", post_with("Content-Length: 0\r\n\r\n"), 200},
      {"chunked", post_with("Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"), 200},
      {"chunked, upper case", post_with("Transfer-Encoding: CHUNKED\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"), 200},
      {"chunked, then spaces", post_with("Transfer-Encoding: chunked \t\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"), 400},
      {"chunked, with a comma", post_with("Transfer-Encoding: chunked,\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"), 501},
      {"chunked with extension", post_with("Transfer-Encoding: chunked\r\n\r\n4;a=b\r\nabcd\r\n0\r\n\r\n"), 200},
      {"chunked with trailer", post_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), 200},
      {"chunked, incomplete", post_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"), 0},
      {"last chunk, then junk", post_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\na"), 0},
      {"bad trailer", post_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX Y\r\n\r\n"), 400},
      {"length, then chunked", post_with("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
      {"chunked, then length", post_with("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"), 400},
      {"gzip, then length", post_with("Transfer-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"), 400},
      {"length, then gzip", post_with("Content-Length: 4\r\nTransfer-Encoding: gzip\r\n\r\nabcd"), 400},
      {"gzip", post_with("Transfer-Encoding: gzip\r\n\r\n"), 501},
      {"chunked, gzip", post_with("Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"), 501},
      {"gzip, chunked", post_with("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501},
      {"chunked twice", post_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 501},
      {"identity", post_with("Transfer-Encoding: identity\r\n\r\n"), 501},
      {"empty encoding", post_with("Transfer-Encoding: \r\n\r\n"), 501},
      {"chunked in 1.0", "POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
      {"two different lengths", post_with("Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"), 400},
      {"two equal lengths", post_with("Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd"), 400},
      {"length list", post_with("Content-Length: 4, 4\r\n\r\nabcd"), 400},
      {"length with sign", post_with("Content-Length: +4\r\n\r\nabcd"), 400},
      {"negative length", post_with("Content-Length: -4\r\n\r\nabcd"), 400},
      {"length with letter", post_with("Content-Length: 4a\r\n\r\nabcd"), 400},
      {"empty length", post_with("Content-Length: \r\n\r\n"), 400},
      {"huge length", post_with("Content-Length: 99999999999999999999999\r\n\r\nabcd"), 400},
      {"length over the limit", post_with("Content-Length: 33554433\r\n\r\n"), 413},
      {"length over the limit, Expect", post_with("Content-Length: 33554433\r\nExpect: 100-continue\r\n\r\n"), 413},
      {"chunk size 0x4", post_with("Transfer-Encoding: chunked\r\n\r\n0x4\r\nabcd\r\n0\r\n\r\n"), 400},
      {"chunk size empty", post_with("Transfer-Encoding: chunked\r\n\r\n\r\nabcd\r\n0\r\n\r\n"), 400},
      {"chunk size overflow", post_with("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabcd"), 400},
      {"chunk, line feeds only", post_with("Transfer-Encoding: chunked\r\n\r\n4\nabcd\n0\n\n"), 400},
      {"chunk too long", post_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n"), 400},
      {"unknown expectation", post_with("Expect: miracles\r\n\r\n"), 417},
  };
}

std::vector<Case> head_cases() {
  return {
      {"least", get_with("Host: x\r\n\r\n"), 200},
      {"1.0 without Host", "GET /p HTTP/1.0\r\n\r\n", 200},
      {"leading line end", "\r\n" + get_with("Host: x\r\n\r\n"), 200},
      {"many leading line ends", "\r\n\r\n\r\n" + get_with("Host: x\r\n\r\n"), 400},
      {"upgrade offer is ignored", get_with("Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"), 200},
      {"no Host", get_with("\r\n"), 400},
      {"two Hosts", get_with("Host: a\r\nHost: b\r\n\r\n"), 400},
      {"two Hosts in 1.0", "GET /p HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"line feeds only", "GET /p HTTP/1.1\nHost: x\n\n", 400},
      {"line feeds only, first line", "GET /p HTTP/1.1\n", 400},
      {"line feed in headers", get_with("Host: x\nA: b\r\n\r\n"), 400},
      {"bare carriage return", get_with("Host: x\r\nA: b\rc\r\n\r\n"), 400},
      {"folded header", get_with("Host: x\r\nA: b\r\n c\r\n\r\n"), 400},
      {"folded with tab", get_with("Host: x\r\nA: b\r\n\tc\r\n\r\n"), 400},
      {"nameless header", get_with("Host: x\r\n: b\r\n\r\n"), 400},
      {"space before colon", get_with("Host: x\r\nA : b\r\n\r\n"), 400},
      {"header without colon", get_with("Host: x\r\nA\r\n\r\n"), 400},
      {"NUL in value", get_with(std::string("Host: x\r\nA: b\0c\r\n\r\n", 19)), 400},
      {"control character in value", get_with("Host: x\r\nA: b\x01\r\n\r\n"), 400},
      {"UTF-8 in value", get_with("Host: x\r\nA: \xC3\xA9\r\n\r\n"), 200},
      {"UTF-8 in target", "GET /h\xC3\xA9 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"tab in request line", "GET\t/p HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"two spaces", "GET  /p HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"no version", "GET /p\r\nHost: x\r\n\r\n", 400},
      {"only a word", "GET\r\n", 400},
      {"version 0.9", "GET /p HTTP/0.9\r\n\r\n", 505},
      {"version 1.2", "GET /p HTTP/1.2\r\nHost: x\r\n\r\n", 505},
      {"version 2.0", "GET /p HTTP/2.0\r\nHost: x\r\n\r\n", 505},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"version without digits", "GET /p HTTP/a.b\r\nHost: x\r\n\r\n", 400},
      {"lower case version", "GET /p http/1.1\r\nHost: x\r\n\r\n", 400},
      {"lower case method", "get /p HTTP/1.1\r\nHost: x\r\n\r\n", 501},
      {"unknown method", "BREW /p HTTP/1.1\r\nHost: x\r\n\r\n", 501},
      {"CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 501},
      {"TRACE", "TRACE /p HTTP/1.1\r\nHost: x\r\n\r\n", 501},
      {"method with odd characters", "G@T /p HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"TLS hello", std::string("\x16\x03\x01\x02\x00\x01", 6), 400},
      {"absolute target without a host", "GET http:///p HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"absolute target with a user", "GET http://a@x/p HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"two words as a host", get_with("Host: a b\r\n\r\n"), 400},
      {"user as a host", get_with("Host: a@b\r\n\r\n"), 400},
      {"port that is no number", get_with("Host: a:b\r\n\r\n"), 400},
      {"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 200},
      {"GET *", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"fragment", "GET /p#x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"bad escape", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"escaped NUL", "GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
  };
}

std::vector<Case> limit_cases() {
  std::string hundred, hundred_one;
  for (int i = 0; i < 99; ++i) hundred += "A: b\r\n";
  hundred_one = hundred + "A: b\r\n";
  const std::string long_extension(17 * 1024, 'e');
  return {
      {"100 headers", get_with(std::string(kHost) + hundred + "\r\n"), 200},
      {"101 headers", get_with(std::string(kHost) + hundred_one + "\r\n"), 431},
      {"headers of 15 KiB", get_with(std::string(kHost) + "A: " + std::string(15 * 1024, 'a') + "\r\n\r\n"), 200},
      {"headers of 20 KB", get_with(std::string(kHost) + "A: " + std::string(20'000, 'a') + "\r\n\r\n"), 431},
      {"headers without end", get_with("A: " + std::string(17 * 1024, 'a')), 431},
      {"target of 8,000", "GET /" + std::string(8'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 200},
      {"target of 8 KiB", "GET /" + std::string(8'192, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
      {"request line without end", "GET /" + std::string(9'000, 'a'), 414},
      {"long extension", post_with("Transfer-Encoding: chunked\r\n\r\n1;" + long_extension), 431},
      {"long trailer", post_with("Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + long_extension), 431},
      {"many zeros", post_with("Transfer-Encoding: chunked\r\n\r\n" + std::string(17 * 1024, '0')), 431},
  };
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Outcome whole = parse_whole(c.text);
    EXPECT_EQ(whole.status, c.status) << c.name;
    for (const std::size_t piece : {1, 2, 7}) {
      const Outcome pieces = parse(c.text, piece);
      EXPECT_EQ(pieces.status, c.status) << c.name << ", in pieces of " << piece;
      EXPECT_TRUE(c.status != 200 || pieces == whole) << c.name << ", in pieces of " << piece;
    }
  }
}

TEST(HttpParser, JudgesFraming) { expect_all(framing_cases()); }
TEST(HttpParser, JudgesHeads) { expect_all(head_cases()); }
TEST(HttpParser, EnforcesLimits) { expect_all(limit_cases()); }

// Bytes changed, dropped, doubled: whatever comes out, it comes out the same in pieces of any size.
TEST(HttpParser, PiecesNeverMatter) {
  std::vector<std::string> seeds;
  for (const auto& cases : {framing_cases(), head_cases()}) {
    for (const Case& c : cases) seeds.push_back(c.text);
  }
  constexpr char kLetters[] = "\r\n\t :;,/0123456789abfGPT%*#\0\x7f\xc3";
  const std::string_view alphabet(kLetters, sizeof kLetters - 1);
  std::mt19937 random(7);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 20'000; ++i) {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t edits = below(3) + 1; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0: text[at] = alphabet[below(alphabet.size())]; break;
        case 1: text.erase(at, below(4) + 1); break;
        case 2: text.insert(at, text.substr(at, below(30))); break;
        case 3: text.insert(at, 1, alphabet[below(alphabet.size())]); break;
      }
    }
    const Outcome whole = parse_whole(text);
    const Outcome pieces = parse(text, below(9) + 1);
    ASSERT_EQ(whole.status, pieces.status) << text;
    if (whole.status == 200) {
      ASSERT_TRUE(whole == pieces) << text;
      ASSERT_EQ(whole.taken, pieces.taken) << text;
    }
  }
}

TEST(HttpParser, TakesTheRequestApart) {
  const Outcome outcome = parse_whole(
      "PUT /v1/a%2Fb/c%20d?x=1&y=a+b%21&empty HTTP/1.1\r\nHost: h\r\nX-One:  first \r\nx-one: second\r\n"
      "Content-Length: 3\r\n\r\nabcGET /next");
  ASSERT_EQ(outcome.status, 200);
  const HttpRequest& request = outcome.request;
  EXPECT_EQ(request.method, HttpMethod::put);
  EXPECT_EQ(request.path, "/v1/a/b/c d");
  EXPECT_EQ(request.raw_path(), "/v1/a%2Fb/c%20d");
  EXPECT_EQ(request.query("x"), "1");
  EXPECT_EQ(request.query("y"), "a b!");
  EXPECT_EQ(request.query("empty"), "");
  EXPECT_EQ(request.query("none"), std::nullopt);
  EXPECT_EQ(request.header("X-ONE"), "first");
  EXPECT_EQ(request.headers.all("x-one").size(), 2u);
  EXPECT_EQ(request.body, "abc");
  EXPECT_TRUE(request.keep_alive);
}

TEST(HttpParser, TakesThePathOfAnAbsoluteTarget) {
  const auto target = [](const std::string& text) {
    return parse_whole("GET " + text + " HTTP/1.1\r\nHost: x\r\n\r\n").request.target;
  };
  EXPECT_EQ(target("http://x/p?a=b"), "/p?a=b");
  EXPECT_EQ(target("HTTPS://[::1]:80/p"), "/p");
  EXPECT_EQ(target("http://x:80"), "/");
  EXPECT_EQ(target("http://x?a=b"), "/?a=b");
}

TEST(HttpParser, TakesEveryHostThatMayBe) {
  for (const char* host : {"", "a", "a-b.c_d~", "a:80", "a:", "127.0.0.1:1", "[::1]", "[2001:db8::1]:8080", "%41"}) {
    EXPECT_EQ(parse_whole(get_with("Host: " + std::string(host) + "\r\n\r\n")).status, 200) << host;
  }
}

TEST(HttpParser, LeavesWhatFollowsTheRequest) {
  for (const std::string& first : {get_with("Host: x\r\n\r\n"), post_with("Content-Length: 2\r\n\r\nab"),
                                   post_with("Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")}) {
    EXPECT_EQ(parse_whole(first + "GET /next HTTP/1.1\r\n").taken, first.size()) << first;
    EXPECT_EQ(parse(first + "GET /next HTTP/1.1\r\n", 3).taken, first.size()) << first;
  }
}

TEST(HttpParser, AChunkedBodyEndsInAWholeLineEnd) {
  const std::string head = post_with("Transfer-Encoding: chunked\r\n\r\n");
  for (const std::size_t piece : {1u, 2u, 3u, 1000u}) {
    EXPECT_EQ(parse(head + "2\r\nab\r\n0\r\n\r\n", piece).status, 200) << piece;
    EXPECT_EQ(parse(head + "2\r\nab\r\n0\r\nX: y\r\n\r\n", piece).status, 200) << piece;
    EXPECT_EQ(parse(head + "2\r\nab\r\n0\r\n\n", piece).status, 400) << piece;
    EXPECT_EQ(parse(head + "0\r\nX: y\r\n\n", piece).status, 400) << piece;
  }
}

TEST(HttpParser, TakesNoCompressedBody) {
  EXPECT_EQ(parse_whole(post_with("Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab")).status, 415);
  EXPECT_EQ(parse_whole(post_with("Content-Encoding: Identity\r\nContent-Length: 2\r\n\r\nab")).status, 200);
}

TEST(HttpParser, CountsAChunkedBody) {
  HttpLimits limits;
  limits.body_bytes = 8;
  const std::string head = post_with("Transfer-Encoding: chunked\r\n\r\n");
  for (const std::size_t piece : {1u, 1000u}) {
    EXPECT_EQ(parse(head + "4\r\nabcd\r\n4\r\nefgh\r\n0\r\n\r\n", piece, limits).request.body, "abcdefgh");
    EXPECT_EQ(parse(head + "4\r\nabcd\r\n5\r\nefghi\r\n0\r\n\r\n", piece, limits).status, 413);
  }
}

TEST(HttpParser, KeepsAliveAsTheVersionSays) {
  EXPECT_TRUE(parse_whole(get_with("Host: x\r\n\r\n")).request.keep_alive);
  EXPECT_FALSE(parse_whole(get_with("Host: x\r\nConnection: close\r\n\r\n")).request.keep_alive);
  EXPECT_FALSE(parse_whole("GET / HTTP/1.0\r\n\r\n").request.keep_alive);
  EXPECT_TRUE(parse_whole("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").request.keep_alive);
}

TEST(HttpParser, KnowsWhoWaitsForContinue) {
  const HttpLimits limits;
  HttpRequest request;
  HttpParser parser(limits, request);
  parser.feed(post_with("Expect: 100-Continue\r\nContent-Length: 4\r\n\r\n"));
  ASSERT_EQ(parser.state(), HttpParser::State::head_done);
  EXPECT_TRUE(parser.expects_continue());
}

TEST(HttpParser, IsUntouchedUntilARequestBegins) {
  const HttpLimits limits;
  HttpRequest request;
  HttpParser parser(limits, request);
  EXPECT_TRUE(parser.untouched());
  parser.feed("\r\n");
  EXPECT_TRUE(parser.untouched());
  parser.feed("G");
  EXPECT_FALSE(parser.untouched());
}

}  // namespace
}  // namespace chasqui::net
