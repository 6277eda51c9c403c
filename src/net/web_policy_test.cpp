#include "net/web_policy.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

HttpRequest request(HttpMethod method, HttpHeaders headers, bool is_unix = false) {
  HttpRequest out;
  out.method = method;
  out.headers = std::move(headers);
  HttpPeer peer;
  peer.is_unix = is_unix;
  out.peer = std::make_shared<const HttpPeer>(peer);
  return out;
}

WebPolicy on_this_machine() {
  WebPolicy policy;
  policy.keyless = policy.checks_host = true;
  return policy;
}

int status(const WebPolicy& policy, const HttpRequest& asked) {
  const auto refusal = judge(policy, asked);
  return refusal ? refusal->status : 200;
}

int status_of_host(const WebPolicy& policy, std::string_view host) {
  return status(policy, request(HttpMethod::get, {{"Host", host}}));
}

int status_of_origin(const WebPolicy& policy, std::string_view origin, std::string_view host = "localhost:8080") {
  return status(
      policy,
      request(HttpMethod::post,
              {{"Host", host}, {"Origin", origin}, {"Content-Type", "application/json"}, {"Content-Length", "2"}}));
}

TEST(WebPolicy, AKeylessServerOfThisMachineAnswersToNamesOfThisMachine) {
  WebPolicy policy = on_this_machine();
  policy.hosts = {"box.lan"};
  for (const char* host : {"localhost", "LocalHost:8080", "a.localhost:1", "127.0.0.1", "127.8.9.10:80", "[::1]",
                           "[::1]:8080", "box.lan", "BOX.lan:9"}) {
    EXPECT_EQ(status_of_host(policy, host), 200) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1", "[::2]",
                           "evillocalhost", "box.lan.evil.example", "[::ffff:127.0.0.1]"}) {
    EXPECT_EQ(status_of_host(policy, host), 421) << host;
  }
}

TEST(WebPolicy, TheAdminListenerLetsNoPagesInAndChecksTheNameOfThoseOnThisMachine) {
  WebPolicy policy;
  policy.keyless = policy.for_operators = true;
  policy.loopback_origins = false;
  const auto asked = [](bool here, HttpHeaders headers) {
    HttpRequest out = request(HttpMethod::post, std::move(headers));
    HttpPeer peer;
    peer.is_loopback = here;
    out.peer = std::make_shared<const HttpPeer>(peer);
    return out;
  };
  EXPECT_EQ(status(policy, asked(true, {{"Host", "localhost:9090"}})), 200);
  EXPECT_EQ(status(policy, asked(true, {{"Host", "evil.example"}})), 421) << "a page that was rebound to 127.0.0.1";
  EXPECT_EQ(status(policy, asked(false, {{"Host", "node-7.cluster"}})), 200);
  for (const char* origin : {"https://evil.example", "http://localhost:8080", "null"}) {
    EXPECT_EQ(status(policy, asked(true, {{"Host", "localhost:9090"}, {"Origin", origin}})), 403) << origin;
  }
}

TEST(WebPolicy, OtherServersAnswerToAnyName) {
  WebPolicy policy = on_this_machine();
  EXPECT_EQ(status(policy, request(HttpMethod::get, {{"Host", "evil.example"}}, true)), 200) << "a Unix socket";
  EXPECT_EQ(status_of_host(policy, ""), 200) << "an HTTP/1.1 client that has none to say";
  EXPECT_EQ(status(policy, request(HttpMethod::get, {})), 200) << "HTTP/1.0 has no Host";
  policy.checks_host = false;
  EXPECT_EQ(status_of_host(policy, "evil.example"), 200);
}

TEST(WebPolicy, PagesOfOtherOriginsAreRefusedUnlessTheyAreAllowed) {
  WebPolicy policy = on_this_machine();
  for (const char* origin : {"http://localhost:8080", "http://localhost", "https://127.0.0.1:3000", "http://[::1]:5",
                             "http://dev.localhost:4000"}) {
    EXPECT_EQ(status_of_origin(policy, origin), 200) << origin;
  }
  for (const char* origin : {"http://evil.example", "null", "", "file://", "http://localhost.evil.example",
                             "chrome-extension://localhost", "http://localhost:8080/x", "http://a@localhost"}) {
    EXPECT_EQ(status_of_origin(policy, origin), 403) << origin;
  }
  allow_origin(policy, "https://Chat.example");
  EXPECT_EQ(status_of_origin(policy, "https://chat.example"), 200);
  EXPECT_EQ(status_of_origin(policy, "http://chat.example"), 403);
  EXPECT_EQ(status_of_origin(policy, "https://chat.example:444"), 403);
}

TEST(WebPolicy, APageOfTheServerItselfMayAsk) {
  WebPolicy policy;
  policy.keyless = true;
  policy.loopback_origins = false;
  EXPECT_EQ(status_of_origin(policy, "http://box.lan:8080", "box.lan:8080"), 200);
  EXPECT_EQ(status_of_origin(policy, "https://box.lan", "box.lan"), 200) << "a proxy speaks TLS";
  EXPECT_EQ(status_of_origin(policy, "http://box.lan", "BOX.lan:80"), 200);
  EXPECT_EQ(status_of_origin(policy, "http://box.lan:81", "box.lan"), 403);
  EXPECT_EQ(status_of_origin(policy, "http://localhost", "box.lan"), 403);
}

TEST(WebPolicy, WhatAPageSendsMustBeDeclaredAsJson) {
  const WebPolicy policy = on_this_machine();
  const auto posted = [&policy](HttpHeaders headers) {
    headers.add("Host", "localhost");
    headers.add("Content-Length", "10");
    return status(policy, request(HttpMethod::post, std::move(headers)));
  };
  EXPECT_EQ(posted({{"Content-Type", "application/x-www-form-urlencoded"}}), 200) << "curl -d";
  EXPECT_EQ(posted({{"Origin", "http://localhost"}, {"Content-Type", "text/plain"}}), 415);
  EXPECT_EQ(posted({{"Origin", "http://localhost"}}), 415);
  EXPECT_EQ(posted({{"Origin", "http://localhost"}, {"Content-Type", "Application/JSON; charset=utf-8"}}), 200);
  EXPECT_EQ(posted({{"Origin", "http://localhost"}, {"Content-Type", "application/ld+json"}}), 200);
  EXPECT_EQ(posted({{"Sec-Fetch-Site", "cross-site"}, {"Content-Type", "text/plain"}}), 415);
  EXPECT_EQ(posted({{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", "text/plain"}}), 200);
  const HttpRequest bare = request(HttpMethod::post, {{"Host", "localhost"}, {"Origin", "http://localhost"}});
  EXPECT_EQ(status(policy, bare), 200) << "there is nothing to declare";
  EXPECT_EQ(status(policy, request(HttpMethod::del, {{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}})), 415);
}

TEST(WebPolicy, PagesOfOtherSitesEmbedNothing) {
  WebPolicy policy = on_this_machine();
  const auto shown = [&policy](const char* site, const char* as) {
    return status(policy,
                  request(HttpMethod::get, {{"Host", "localhost"}, {"Sec-Fetch-Site", site}, {"Sec-Fetch-Dest", as}}));
  };
  for (const char* as : {"image", "script", "iframe", "empty"}) EXPECT_EQ(shown("cross-site", as), 403) << as;
  EXPECT_EQ(shown("cross-site", "document"), 200) << "a link to this server was followed";
  EXPECT_EQ(shown("same-origin", "image"), 200) << "a picture of the page itself";
  EXPECT_EQ(shown("none", "image"), 200) << "typed by the user";
  policy.any_origin = true;
  EXPECT_EQ(shown("cross-site", "image"), 200);
}

TEST(WebPolicy, WithKeysBrowsersAreOnlyTold) {
  WebPolicy policy;
  EXPECT_EQ(status_of_origin(policy, "http://evil.example"), 200);
  EXPECT_TRUE(cors_headers(policy, request(HttpMethod::get, {{"Origin", "http://evil.example"}})).empty());
  const HttpHeaders told = cors_headers(policy, request(HttpMethod::get, {{"Origin", "http://localhost:3000"}}));
  EXPECT_EQ(told.get("Access-Control-Allow-Origin"), "http://localhost:3000");
  EXPECT_EQ(told.get("Vary"), "Origin");
  EXPECT_EQ(told.get("Access-Control-Allow-Credentials"), "true");
  EXPECT_TRUE(told.has("Access-Control-Expose-Headers"));
  allow_origin(policy, "*");
  EXPECT_TRUE(cors_headers(policy, request(HttpMethod::get, {{"Origin", "http://evil.example"}})).has("Vary"));
}

TEST(WebPolicy, PreflightsAllowWhatIsAskedFor) {
  WebPolicy policy;
  const HttpRequest asked = request(HttpMethod::options, {{"Origin", "http://localhost:3000"},
                                                          {"Access-Control-Request-Method", "POST"},
                                                          {"Access-Control-Request-Headers", "authorization"},
                                                          {"Access-Control-Request-Private-Network", "true"}});
  const HttpHeaders told = preflight_headers(policy, asked);
  EXPECT_EQ(told.get("Access-Control-Allow-Methods"), "GET, POST, DELETE, OPTIONS");
  EXPECT_EQ(told.get("Access-Control-Allow-Headers"), "authorization");
  EXPECT_EQ(told.get("Access-Control-Max-Age"), "600");
  EXPECT_EQ(told.get("Access-Control-Allow-Private-Network"), "true");
  policy.headers = "content-type";
  EXPECT_EQ(preflight_headers(policy, asked).get("Access-Control-Allow-Headers"), "content-type");
  policy.loopback_origins = false;
  EXPECT_TRUE(preflight_headers(policy, asked).empty());
}

TEST(WebPolicy, OriginsAreGivenWithTheirSchemeAndNothingBehindTheirPort) {
  for (const char* good : {"*", "localhost", "null", "https://a.example", "http://[::1]:80", "vscode-webview://abc"}) {
    EXPECT_TRUE(is_origin_rule(good)) << good;
  }
  for (const char* bad : {"", "a.example", "https://", "https://a/", "https://*.a", "ht tp://a", "://a"}) {
    EXPECT_FALSE(is_origin_rule(bad)) << bad;
  }
}

}  // namespace
}  // namespace chasqui::net
