// Two models of one node, side by side, behind the routes of a real server.
#include "api/core/node.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "api/core/fake_node.h"
#include "api/routes/route_table.h"
#include "api/routes/routes.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "net/fake_client.h"
#include "net/http_server.h"
#include "net/wakeup_listener.h"

namespace chasqui {
namespace {

net::HttpResponse plain_error(int status, std::string_view message) {
  return net::HttpResponse(status, "text/plain", std::string(message));
}

// Each engine has its own numbers of requests, as the application gives them.
class NodeTest : public testing::Test, protected FakeFrontend {
 protected:
  NodeTest() {
    node.models.add(left_.served);
    node.models.add(right_.served);
    add_routes(router_, node);
    port_ = server_.listen(net::ListenAddress::tcp("127.0.0.1", 0))->port;
    thread_ = std::thread([this] { loop.run(); });
  }
  ~NodeTest() override {
    loop.post([this] { loop.stop(); });
    thread_.join();
  }

  std::string get(const std::string& path) const {
    net::FakeClient client(port_);
    client.send("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    return client.read_response();
  }
  std::string post(const std::string& path, const std::string& body) const {
    net::FakeClient client(port_);
    client.send("POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_response();
  }
  // The answer to a chat, from `model`; from the default where it is empty.
  std::string chat(const std::string& model, const std::string& text) const {
    const std::string field = model.empty() ? "" : R"("model":")" + model + R"(",)";
    return post("/v1/chat/completions",
                "{" + field + R"("max_tokens":8,"messages":[{"role":"user","content":"say: )" + text + "\"}]}");
  }
  // Runs `function` on the loop and waits for it.
  template <class Function>
  void on_loop(Function function) {
    // Shared: the loop is still in push() when the other side goes on.
    const auto done = std::make_shared<Mailbox<int>>(1);
    loop.post([&function, done] {
      function();
      done->push(0);
    });
    std::vector<int> out;
    done->drain(out, Wait::yes);
  }

  FakeModel left_{clock, loop, wakeup, "left"};
  FakeModel right_{clock, loop, wakeup, "right", 1'000'000};
  net::WakeupListener listener_{loop, wakeup, [this] {
                                  left_.streams.deliver();
                                  right_.streams.deliver();
                                }};
  net::Router router_{&plain_error};
  net::HttpServer server_{loop, router_, config.http};
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(NodeTest, ARequestGoesToTheModelThatItNames) {
  EXPECT_NE(chat("left", "one").find(R"("model":"left")"), std::string::npos);
  const std::string answer = chat("right", "two");
  EXPECT_NE(answer.find(R"("model":"right")"), std::string::npos) << answer;
  EXPECT_NE(chat("", "three").find(R"("model":"left")"), std::string::npos) << "the first one is the default";
  on_loop([this] {
    EXPECT_EQ(left_.engine.next_id().value, 3U);
    EXPECT_EQ(right_.engine.next_id().value, 1'000'001U);
  });
}

TEST_F(NodeTest, AnUnknownModelIsNotFoundAndTheErrorListsThoseThatThereAre) {
  const std::string answer = chat("middle", "one");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 404")) << answer;
  EXPECT_NE(answer.find("model must be one of left, right"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("param":"model")"), std::string::npos) << answer;
  EXPECT_TRUE(post("/v1/chat/completions", R"({"model":7,"messages":[]})").starts_with("HTTP/1.1 400"));
}

TEST_F(NodeTest, ANameLongerThanAnyModelsIsNotFoundAndNotRepeated) {
  const std::string longest(kSizeLimit<"model_name_bytes">, 'x');
  EXPECT_NE(chat(longest, "one").find("there is no model " + longest), std::string::npos);
  const std::string answer = chat(longest + 'x', "one");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 404")) << answer;
  EXPECT_NE(answer.find("no model with a name of more than 1024 bytes; model must be"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("param":"model")"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("xxxx"), std::string::npos) << answer;
}

TEST_F(NodeTest, ModelsAreListedAndAskedAboutByName) {
  const std::string list = get("/v1/models");
  EXPECT_NE(list.find(R"("id":"left")"), std::string::npos);
  EXPECT_NE(list.find(R"("id":"right")"), std::string::npos);
  EXPECT_TRUE(get("/v1/models/right").starts_with("HTTP/1.1 200"));
  EXPECT_NE(get("/props?model=right").find(R"("model_alias":"right")"), std::string::npos);
  EXPECT_NE(get("/props").find(R"("model_alias":"left")"), std::string::npos);
  EXPECT_TRUE(get("/props?model=middle").starts_with("HTTP/1.1 404"));
  EXPECT_NE(get("/api/tags").find(R"("name":"right")"), std::string::npos);
}

TEST_F(NodeTest, SessionsOfTwoModelsAreApart) {
  EXPECT_TRUE(post("/v1/sessions", R"({"model":"right","prompt":"a"})").starts_with("HTTP/1.1 200"));
  on_loop([this] {
    EXPECT_EQ(left_.sessions.list(0, 10, nullptr).size(), 0U);
    EXPECT_EQ(right_.sessions.list(0, 10, nullptr).size(), 1U);
  });
}

// The value of the first `"id":"…"`.
std::string id_of(const std::string& answer) {
  const std::size_t at = answer.find(R"("id":")");
  if (at == std::string::npos) return {};
  return answer.substr(at + 6, answer.find('"', at + 6) - at - 6);
}

TEST_F(NodeTest, ASessionAndAResponseAreFoundWhicheverModelTheyAreOf) {
  const std::string session = id_of(post("/v1/sessions", R"({"model":"right","prompt":"a"})"));
  ASSERT_FALSE(session.empty());
  EXPECT_TRUE(get("/v1/sessions/" + session).starts_with("HTTP/1.1 200"));
  const std::string said = post("/v1/sessions/" + session + "/generate", R"({"model":"left","max_tokens":4})");
  EXPECT_NE(said.find(R"("model":"right")"), std::string::npos) << said;
  EXPECT_EQ(get("/v1/sessions").find(session), std::string::npos) << "the first model has none";
  EXPECT_NE(get("/v1/sessions?model=right").find(session), std::string::npos);
  EXPECT_TRUE(get("/v1/sessions/none").starts_with("HTTP/1.1 404"));

  const std::string response =
      id_of(post("/v1/responses", R"({"model":"right","input":"say: x","max_output_tokens":4})"));
  ASSERT_FALSE(response.empty());
  EXPECT_TRUE(get("/v1/responses/" + response).starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(get("/v1/responses/resp_none").starts_with("HTTP/1.1 404"));
}

TEST_F(NodeTest, AnIdLongerThanAnyResponsesIsLookedForInNoModel) {
  // An id that no server gives, so that only its length says where it is looked for.
  const auto answer_to = [this](std::size_t bytes) {
    const std::string id(bytes, 'r');
    on_loop([&] {
      StoredResponse stored;
      stored.id = id;
      stored.body = std::make_shared<const std::string>("{}");
      stored.conversation = std::make_shared<const Conversation>();
      right_.responses.put(std::move(stored), clock.now());
    });
    return post("/v1/responses",
                R"({"input":"say: x","max_output_tokens":4,"previous_response_id":")" + id + "\"}");
  };
  const std::string found = answer_to(kSizeLimit<"named_id_bytes">);
  EXPECT_NE(found.find(R"("model":"right")"), std::string::npos) << found;
  const std::string missed = answer_to(kSizeLimit<"named_id_bytes"> + 1);
  EXPECT_TRUE(missed.starts_with("HTTP/1.1 400")) << missed;
  EXPECT_NE(missed.find(R"("param":"previous_response_id")"), std::string::npos) << missed;
}

TEST_F(NodeTest, ItemsOfALongInputAreWrittenInThePool) {
  // How many jobs of the pool a page takes.
  const auto jobs_for = [this](std::size_t bytes) {
    const std::string item = R"({"type":"message","id":"item_1","content":")" + std::string(bytes, 'c') + "\"}";
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    on_loop([&] {
      StoredResponse stored;
      stored.id = "resp_long";
      stored.body = std::make_shared<const std::string>("{}");
      stored.input = std::make_shared<const ResponseInput>(ResponseInput{.items = {item}, .ids = {"item_1"}});
      right_.responses.put(std::move(stored), clock.now());
      before = offload.asked();
    });
    const std::string answer = get("/v1/responses/resp_long/input_items");
    EXPECT_NE(answer.find(R"("data":[)" + item + R"(],"first_id":"item_1")"), std::string::npos) << answer.size();
    on_loop([&] {
      after = offload.asked();
      right_.responses.erase({0, "resp_long"}, clock.now());
    });
    return after - before;
  };
  EXPECT_EQ(jobs_for(1000), 0U);
  EXPECT_EQ(jobs_for(1'000'000), 1U);
  EXPECT_TRUE(get("/v1/responses/resp_long/input_items").starts_with("HTTP/1.1 404"));
}

TEST_F(NodeTest, TheBodysModelIsStrongerThanThatOfTheQuery) {
  const auto model_of = [this](const std::string& path, const std::string& field) {
    const std::string answer = post(path, "{" + field + R"("max_tokens":4,"prompt":"say: x"})");
    return answer.find(R"("model":"right")") != std::string::npos ? "right" : "left";
  };
  EXPECT_STREQ(model_of("/v1/completions?model=right", ""), "right");
  EXPECT_STREQ(model_of("/v1/completions?model=right", R"("model":"left",)"), "left");
  EXPECT_STREQ(model_of("/v1/completions", R"("model":"right:latest",)"), "right") << "as Ollama's clients say it";
}

// The table of routes says who may call what; the server does as it says.
TEST_F(NodeTest, EveryRouteAsksForAKeyButThoseThatAreOpen) {
  const auto lines = read_keys({"secret"}, "");
  ASSERT_TRUE(lines);
  on_loop([&] { keys.replace(*lines); });
  for (const Route& route : all_routes()) {
    std::string path(route.path);
    if (const auto at = path.find("{id}"); at != std::string::npos) path.replace(at, 4, "0");
    if (route.access == Access::open) {
      EXPECT_TRUE(get(path).starts_with("HTTP/1.1 200")) << path;
      continue;
    }
    net::FakeClient client(port_);
    client.send(std::string(net::name(route.method)) + " " + path +
                " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}");
    const std::string answer = client.read_response();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 401")) << path << ": " << answer;
    const std::string body = route.dialect->fault_body(401, "Invalid API Key");
    EXPECT_NE(answer.find(body), std::string::npos) << path << ": " << answer;
  }
}

struct ManyModels : FakeFrontend {
  explicit ManyModels(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      models.push_back(
          std::make_unique<FakeModel>(clock, loop, wakeup, "model-" + std::to_string(i), 1 + i * 1'000'000));
      node.models.add(models.back()->served);
    }
  }
  std::vector<std::unique_ptr<FakeModel>> models;
};

TEST(ModelTable, AnUnknownNameIsAnsweredWithThoseThatAreNear) {
  ManyModels many(12);
  const auto found = many.node.models.find("model-11:latest");
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)->served, &many.models[11]->served);
  const auto missed = many.node.models.find("modle-11");
  ASSERT_FALSE(missed);
  EXPECT_EQ(missed.error().field, "model");
  EXPECT_NE(missed.error().message.find("there is no model modle-11; of the 12 that GET /v1/models lists the nearest "
                                        "are model-11, "),
            std::string::npos)
      << missed.error().message;
  EXPECT_EQ(missed.error().message.find("model-9"), std::string::npos) << "eight are enough";
  const auto too_long = many.node.models.find(std::string(100'000, 'x'));
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::not_found);
  EXPECT_LT(too_long.error().message.size(), 200U);
}

TEST(ModelTable, OneModelHasEveryName) {
  FakeNode fake;
  EXPECT_EQ((*fake.node.models.find("gpt-4o"))->served, &fake.served);
  EXPECT_EQ((*fake.node.models.find(""))->served, &fake.served);
  EXPECT_EQ((*fake.node.models.find(std::string(100'000, 'x')))->served, &fake.served);
}

TEST(ModelTable, OneModelHasItsOwnNamesAloneWhereNamesAreChecked) {
  FakeNode fake;
  fake.node.models.check_names();
  EXPECT_EQ((*fake.node.models.find("sim"))->served, &fake.served);
  EXPECT_EQ((*fake.node.models.find(""))->served, &fake.served);
  EXPECT_EQ(fake.node.models.find("gpt-4o").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace chasqui
