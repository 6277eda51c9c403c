#include "net/router.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

Awaitable<void> answer_nothing(HttpExchange&) { co_return; }

class RouterTest : public testing::Test {
 protected:
  RouterTest() : router_([](int status, std::string_view) { return HttpResponse(status); }) {
    router_.add(HttpMethod::get, "/", answer_nothing);
    router_.add(HttpMethod::get, "/v1/models", answer_nothing);
    router_.add(HttpMethod::get, "/v1/models/{model}", answer_nothing);
    router_.add(HttpMethod::del, "/v1/models/{model}", answer_nothing);
    router_.add(HttpMethod::post, "/v1/models/load", answer_nothing);
    router_.add(HttpMethod::get, "/v1/{kind}/x/y", answer_nothing);
    router_.add(HttpMethod::get, "/files/{rest...}", answer_nothing);
  }

  Router::Route route(HttpMethod method, std::string target) {
    HttpRequest request;
    request.method = method;
    request.target = std::move(target);
    return router_.route(request);
  }
  int status(HttpMethod method, std::string target) {
    const Router::Route found = route(method, std::move(target));
    return found.refusal ? found.refusal->status : 200;
  }

  Router router_;
};

TEST_F(RouterTest, FindsLiteralPaths) {
  EXPECT_EQ(status(HttpMethod::get, "/"), 200);
  EXPECT_EQ(status(HttpMethod::get, "/v1/models"), 200);
  EXPECT_EQ(status(HttpMethod::get, "/v1/models?x=/y"), 200);
  EXPECT_EQ(status(HttpMethod::get, "/v1/%6Dodels"), 200);
  EXPECT_EQ(status(HttpMethod::get, "/v1/models/"), 404);
  EXPECT_EQ(status(HttpMethod::get, "/v1"), 404);
  EXPECT_EQ(status(HttpMethod::get, "//"), 404);
  EXPECT_EQ(status(HttpMethod::get, "/nothing/here"), 404);
}

TEST_F(RouterTest, Captures) {
  const Router::Route found = route(HttpMethod::get, "/v1/models/org%2Fname%20x");
  ASSERT_NE(found.handler, nullptr);
  ASSERT_EQ(found.params.size(), 1u);
  EXPECT_EQ(found.params[0].first, "model");
  EXPECT_EQ(found.params[0].second, "org/name x");
}

TEST_F(RouterTest, CapturesTheRest) {
  EXPECT_EQ(route(HttpMethod::get, "/files/a/b/c").params.at(0).second, "a/b/c");
  EXPECT_EQ(route(HttpMethod::get, "/files/").params.at(0).second, "");
  EXPECT_EQ(status(HttpMethod::get, "/files"), 404);
}

TEST_F(RouterTest, GoesBackWhenALiteralLeadsNowhere) {
  const Router::Route found = route(HttpMethod::get, "/v1/models/x/y");
  ASSERT_EQ(found.params.size(), 1u);
  EXPECT_EQ(found.params[0].second, "models");
}

TEST_F(RouterTest, SaysWhichMethodsThereAre) {
  const Router::Route found = route(HttpMethod::post, "/v1/models/a");
  ASSERT_TRUE(found.refusal);
  EXPECT_EQ(found.refusal->status, 405);
  EXPECT_EQ(found.refusal->headers.get("Allow"), "GET, HEAD, DELETE");
}

TEST_F(RouterTest, AnswersHeadWithGet) {
  EXPECT_EQ(status(HttpMethod::head, "/v1/models"), 200);
  EXPECT_EQ(status(HttpMethod::head, "/v1/models/load"), 405);
}

TEST_F(RouterTest, HasOneHandlerForOptions) {
  EXPECT_EQ(status(HttpMethod::options, "/v1/models"), 405);
  router_.set_options_handler(answer_nothing);
  EXPECT_EQ(status(HttpMethod::options, "/v1/models"), 200);
  EXPECT_EQ(status(HttpMethod::options, "*"), 200);
  EXPECT_EQ(status(HttpMethod::options, "/nowhere"), 200);
}

TEST_F(RouterTest, AsksTheGateOnlyAboutRoutes) {
  router_.set_gate([](const HttpRequest&) { return HttpResponse(401); });
  EXPECT_EQ(status(HttpMethod::get, "/v1/models"), 401);
  EXPECT_EQ(status(HttpMethod::get, "/nothing"), 404);
}

TEST_F(RouterTest, TakesAPrefixOff) {
  router_.set_prefix("/a/b");
  const auto enter = [this](std::string target) {
    HttpRequest request;
    request.target = std::move(target);
    const Router::Route route = router_.enter(request);
    return std::pair(route.refusal ? route.refusal->status : 200, request.target);
  };
  EXPECT_EQ(enter("/a/b/v1/models?x=1"), std::pair(200, std::string("/v1/models?x=1")));
  EXPECT_EQ(enter("/v1/models").first, 404);
  EXPECT_EQ(enter("/a/bv1/models").first, 404);
  EXPECT_EQ(enter("/a/b").first, 308);
  EXPECT_EQ(enter("/a/b/nowhere").first, 404);
}

TEST_F(RouterTest, NamesRequestsThatHaveNoGoodName) {
  router_.name_requests();
  const auto named = [this](std::string id) {
    HttpRequest request;
    request.target = request.path = "/nowhere";
    if (!id.empty()) request.headers.add("x-request-id", id);
    const Router::Route route = router_.enter(request);
    EXPECT_EQ(route.headers.get("X-Request-Id"), request.header("X-Request-Id"));
    return std::string(route.headers.get("X-Request-Id").value_or(""));
  };
  EXPECT_EQ(named("mine"), "mine");
  for (const std::string& bad : {std::string(), std::string(129, 'x'), std::string("a b"), std::string("\xC3\xB1")}) {
    EXPECT_TRUE(named(bad).starts_with("req_")) << bad;
  }
}

TEST_F(RouterTest, SaysTheSessionsNameAgain) {
  router_.name_requests();
  const auto echoed = [this](std::string_view id) {
    HttpRequest request;
    request.target = request.path = "/nowhere";
    request.headers.add("x-session-id", id);
    return std::string(router_.enter(request).headers.get("X-Session-Id").value_or("none"));
  };
  EXPECT_EQ(echoed("conversation-7"), "conversation-7");
  for (const std::string& bad : {std::string(), std::string(129, 'x'), std::string("a b")}) {
    EXPECT_EQ(echoed(bad), "none") << bad;
  }
}

TEST_F(RouterTest, RefusalsMayDependOnThePath) {
  router_.set_refusals([](const HttpRequest& request, int status, std::string_view) {
    return HttpResponse(status, "text/plain", request.path);
  });
  HttpRequest request;
  request.target = request.path = "/nowhere";
  EXPECT_EQ(router_.route(request).refusal->body, "/nowhere");
}

TEST_F(RouterTest, GivesHeadersToRefusalsToo) {
  router_.set_headers([](const HttpRequest&) { return HttpHeaders{{"Vary", "Origin"}}; });
  HttpRequest request;
  request.target = request.path = "/nowhere";
  EXPECT_EQ(router_.enter(request).headers.get("Vary"), "Origin");
}

}  // namespace
}  // namespace chasqui::net
