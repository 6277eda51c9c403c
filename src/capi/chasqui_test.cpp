// chasqui.h as a program uses it, with the demo model: what is refused and in which words, answers whole and in pieces,
// several at once, cancels, sessions, and how a program waits.
#include "capi/chasqui.h"

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>
#include <poll.h>

namespace chasqui {
namespace {

namespace json = boost::json;

// All that came of one request.
struct Told {
  std::string text;  // pieces joined
  std::size_t parts = 0;
  chasqui_kind last = CHASQUI_PART;
  chasqui_status status = CHASQUI_OK;
  json::object body;  // of the last event
  std::map<chasqui_tokens, std::int64_t> tokens;
};

class ChasquiTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(chasqui_open(R"({"threads":1,"slots":2,"context":1024,"cache_mib":64,"name":"small"})", &engine_),
              CHASQUI_OK)
        << chasqui_error();
  }
  static void TearDownTestSuite() { chasqui_close(engine_); }

  static Told told(const chasqui_event* event, Told before = {}) {
    std::size_t bytes = 0;
    const char* const text = chasqui_event_text(event, &bytes);
    before.text.append(text, bytes);
    before.last = chasqui_event_kind(event);
    before.status = chasqui_event_status(event);
    before.body = json::parse(chasqui_event_json(event)).as_object();
    if (before.last == CHASQUI_PART) ++before.parts;
    for (const chasqui_tokens which : {CHASQUI_TOKENS_PROMPT, CHASQUI_TOKENS_CACHED, CHASQUI_TOKENS_ANSWER}) {
      before.tokens[which] = chasqui_event_tokens(event, which);
    }
    return before;
  }

  // Until nothing runs.
  static std::map<std::uint64_t, Told> collect() {
    std::map<std::uint64_t, Told> all;
    while (const chasqui_event* const event = chasqui_next(engine_, -1)) {
      Told& one = all[chasqui_event_request(event)];
      EXPECT_EQ(one.last, CHASQUI_PART) << "nothing comes after the end";
      one = told(event, std::move(one));
    }
    EXPECT_EQ(chasqui_running(engine_), 0u);
    return all;
  }

  static std::uint64_t chat(const std::string& more, const std::string& question = "What is Chasqui?") {
    std::uint64_t request = 0;
    const std::string body =
        R"({"messages":[{"role":"user","content":")" + question + R"("}],"temperature":0,)" + more + "}";
    EXPECT_EQ(chasqui_chat(engine_, body.c_str(), &request), CHASQUI_OK) << chasqui_error();
    return request;
  }
  static Told answer(const std::string& more) {
    const std::uint64_t request = chat(more);
    return collect()[request];
  }
  static std::string session(const char* body = nullptr) {
    char id[CHASQUI_SESSION_BYTES] = "";
    EXPECT_EQ(chasqui_session_create(engine_, body, id), CHASQUI_OK) << chasqui_error();
    return id;
  }

  static chasqui_engine* engine_;
};
chasqui_engine* ChasquiTest::engine_ = nullptr;

constexpr const char* kEndless = R"("ignore_eos":true,"max_tokens":900)";

std::string refusal(const char* settings) {
  chasqui_engine* engine = nullptr;
  EXPECT_EQ(chasqui_open(settings, &engine), CHASQUI_INVALID_REQUEST) << settings;
  EXPECT_EQ(engine, nullptr);
  return chasqui_error();
}

TEST(ChasquiOpen, RefusesWhatIsWrongByName) {
  EXPECT_EQ(chasqui_abi(), CHASQUI_ABI);
  EXPECT_STRNE(chasqui_version(), "");
  EXPECT_EQ(chasqui_open("{}", nullptr), CHASQUI_INVALID_REQUEST);
  EXPECT_NE(refusal("{").find("JSON"), std::string::npos) << chasqui_error();
  EXPECT_NE(refusal(R"({"slot":2})").find("slot is no setting; there are model, name"), std::string::npos);
  EXPECT_NE(refusal(R"({"slots":0})").find("slots must be a whole number between 1 and 256"), std::string::npos)
      << chasqui_error();
  EXPECT_NE(refusal(R"({"log":"loud"})").find("log must be off, error"), std::string::npos) << chasqui_error();
  EXPECT_NE(refusal(R"({"model":"/nowhere/x.gguf"})").find("/nowhere/x.gguf"), std::string::npos) << chasqui_error();
}

TEST(ChasquiOpen, TheHeaderDescribesEachSetting) {
  std::ifstream file(CHASQUI_SOURCE_DIR "/src/capi/chasqui.h");
  const std::string header((std::istreambuf_iterator<char>(file)), {});
  const std::string said = refusal(R"({"nonsense":1})");
  std::istringstream names(said.substr(said.find("there are ") + std::string("there are ").size()));
  std::size_t count = 0;
  for (std::string name; names >> name; ++count) {
    if (name.back() == ',') name.pop_back();
    EXPECT_NE(header.find("\n *   " + name + " "), std::string::npos) << name;
  }
  EXPECT_EQ(count, 12u);
}

TEST(ChasquiOpen, TakesNullWhereNothingIsThere) {
  chasqui_close(nullptr);
  EXPECT_EQ(chasqui_running(nullptr), 0u);
  EXPECT_EQ(chasqui_fd(nullptr), -1);
  EXPECT_EQ(chasqui_next(nullptr, 0), nullptr);
  EXPECT_EQ(chasqui_chat(nullptr, "{}", nullptr), CHASQUI_INVALID_REQUEST);
  EXPECT_EQ(chasqui_cancel(nullptr, 1), CHASQUI_INVALID_REQUEST);
  EXPECT_NE(std::string(chasqui_error()).find("NULL"), std::string::npos);
}

TEST_F(ChasquiTest, AnAnswerIsWholeUnlessItIsToStream) {
  const Told whole = answer(R"("max_tokens":12)");
  EXPECT_EQ(whole.last, CHASQUI_END);
  EXPECT_EQ(whole.parts, 0u);
  EXPECT_EQ(whole.body.at("model"), "small");
  EXPECT_EQ(whole.body.at("choices").at(0).at("message").at("content"), json::string(whole.text));
  EXPECT_EQ(whole.tokens.at(CHASQUI_TOKENS_ANSWER), 12);
  EXPECT_EQ(whole.tokens.at(CHASQUI_TOKENS_PROMPT), whole.body.at("usage").at("prompt_tokens").as_int64());

  const Told streamed = answer(R"("max_tokens":12,"stream":true)");
  EXPECT_EQ(streamed.text, whole.text);
  EXPECT_GT(streamed.parts, 3u);
  EXPECT_EQ(streamed.body.at("reason"), "length");
  EXPECT_EQ(streamed.body.at("usage").at("completion_tokens"), 12);
  EXPECT_GT(streamed.body.at("timings").at("cpu_ms").to_number<double>(), 0);
}

TEST_F(ChasquiTest, BodiesAreReadAsByTheServer) {
  std::uint64_t request = 7;
  EXPECT_EQ(chasqui_chat(engine_, R"({"messages":[{"role":"user","content":"Hi"}],"temperature":-3})", &request),
            CHASQUI_INVALID_REQUEST);
  EXPECT_NE(std::string(chasqui_error()).find("temperature"), std::string::npos) << chasqui_error();
  EXPECT_EQ(request, 7u) << "it is left alone";
  const std::string words(8000, 'x');
  EXPECT_EQ(chasqui_complete(engine_, ("{\"prompt\":\"" + words + "\"}").c_str(), nullptr), CHASQUI_CONTEXT_TOO_LONG);
  EXPECT_EQ(chasqui_running(engine_), 0u);

  const Told fitting =
      answer(R"("max_tokens":30,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":
      {"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}})");
  EXPECT_TRUE(json::parse(fitting.text).at("ok").is_bool()) << fitting.text;
}

TEST_F(ChasquiTest, SeveralChoicesAndPromptsAreOneAnswer) {
  const Told two = answer(R"("max_tokens":5,"ignore_eos":true,"n":2)");
  EXPECT_EQ(two.tokens.at(CHASQUI_TOKENS_ANSWER), 10);
  EXPECT_EQ(two.body.at("choices").as_array().size(), 2u);

  std::uint64_t request = 0;
  ASSERT_EQ(chasqui_complete(engine_,
                             R"({"prompt":["One","Two of them"],"max_tokens":3,"ignore_eos":true,"n":2,"stream":true})",
                             &request),
            CHASQUI_OK);
  const Told both = collect()[request];
  EXPECT_EQ(both.tokens.at(CHASQUI_TOKENS_ANSWER), 12);
  EXPECT_EQ(both.tokens.at(CHASQUI_TOKENS_PROMPT), both.body.at("usage").at("prompt_tokens").as_int64());
  EXPECT_GT(both.tokens.at(CHASQUI_TOKENS_PROMPT), 2);
}

TEST_F(ChasquiTest, RequestsRunAtOnceAndWaitForSlots) {
  for (int i = 0; i < 5; ++i) chat(R"("max_tokens":8,"ignore_eos":true)", "Question " + std::to_string(i));
  EXPECT_EQ(chasqui_running(engine_), 5u);
  const auto all = collect();
  ASSERT_EQ(all.size(), 5u);
  for (const auto& [request, one] : all) EXPECT_EQ(one.tokens.at(CHASQUI_TOKENS_ANSWER), 8) << request;
}

TEST_F(ChasquiTest, WhatIsCancelledEndsAllTheSame) {
  const std::uint64_t request = chat(kEndless);
  EXPECT_EQ(chasqui_cancel(engine_, request), CHASQUI_OK);
  const Told end = collect()[request];
  EXPECT_EQ(end.last, CHASQUI_END);
  EXPECT_EQ(end.body.at("choices").at(0).at("finish_reason"), "cancelled");
  EXPECT_EQ(chasqui_cancel(engine_, request), CHASQUI_OK) << "it has ended";
  EXPECT_EQ(chasqui_cancel(engine_, request + 1'000'000), CHASQUI_NOT_FOUND);
}

TEST_F(ChasquiTest, ASessionKnowsWhatWasSaid) {
  const std::string id = session(R"({"messages":[{"role":"user","content":"What is Chasqui?"}]})");
  const auto say = [&id] {
    std::uint64_t request = 0;
    EXPECT_EQ(chasqui_session_generate(engine_, id.c_str(), R"({"temperature":0,"max_tokens":20})", &request),
              CHASQUI_OK)
        << chasqui_error();
    return request;
  };
  const std::uint64_t first = say();
  EXPECT_EQ(chasqui_session_append(engine_, id.c_str(), R"({"text":"x"})"), CHASQUI_CONFLICT);
  EXPECT_EQ(collect()[first].last, CHASQUI_END);
  ASSERT_EQ(
      chasqui_session_append(engine_, id.c_str(), R"({"message":{"role":"user","content":"And what is a slot?"}})"),
      CHASQUI_OK)
      << chasqui_error();
  char fork[CHASQUI_SESSION_BYTES] = "";
  ASSERT_EQ(chasqui_session_fork(engine_, id.c_str(), fork), CHASQUI_OK);
  EXPECT_NE(fork, id);
  const std::uint64_t second = say();
  EXPECT_GT(collect()[second].tokens.at(CHASQUI_TOKENS_CACHED), 10);
  EXPECT_EQ(chasqui_session_end(engine_, fork), CHASQUI_OK);
  EXPECT_EQ(chasqui_session_end(engine_, id.c_str()), CHASQUI_OK);
  EXPECT_EQ(chasqui_session_end(engine_, id.c_str()), CHASQUI_NOT_FOUND);
}

TEST_F(ChasquiTest, ASessionThatEndsWhileItSpeaksEndsItsAnswer) {
  const std::string id = session(R"({"text":"Once upon a time"})");
  std::uint64_t request = 0;
  ASSERT_EQ(chasqui_session_generate(engine_, id.c_str(), R"({"ignore_eos":true,"stream":true})", &request),
            CHASQUI_OK);
  ASSERT_NE(chasqui_next(engine_, -1), nullptr);
  EXPECT_EQ(chasqui_session_end(engine_, id.c_str()), CHASQUI_OK);
  const Told end = collect()[request];
  EXPECT_EQ(end.last, CHASQUI_END);
  EXPECT_EQ(end.body.at("reason"), "cancelled");
}

TEST_F(ChasquiTest, ADescriptorTellsWhenThereIsSomething) {
  EXPECT_EQ(chasqui_next(engine_, 0), nullptr);
  EXPECT_EQ(chasqui_next(engine_, -1), nullptr) << "nothing runs";
  const int descriptor = chasqui_fd(engine_);
  ASSERT_GE(descriptor, 0);
  const std::uint64_t request = chat(R"("max_tokens":4)");
  Told all;
  while (chasqui_running(engine_) > 0) {
    pollfd waiting{descriptor, POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
    while (const chasqui_event* const event = chasqui_next(engine_, 0)) {
      EXPECT_EQ(chasqui_event_request(event), request);
      all = told(event, std::move(all));
    }
  }
  EXPECT_EQ(all.last, CHASQUI_END);
}

TEST_F(ChasquiTest, ADescriptorIsQuietWhenNothingRuns) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 3; ++i) chasqui_cancel(engine_, chat(R"("max_tokens":8,"stream":true)"));
    chat(R"("max_tokens":2,"stream":true)");
    collect();
    pollfd waiting{chasqui_fd(engine_), POLLIN, 0};
    // A worker may be about to signal what was taken already, but not again and again.
    int turns = 0;
    for (; turns < 100 && ::poll(&waiting, 1, 0) == 1; ++turns) EXPECT_EQ(chasqui_next(engine_, 0), nullptr);
    ASSERT_LT(turns, 100) << "a program that polls it would spin";
  }
}

TEST_F(ChasquiTest, ACallbackGetsEventsUntilItHasEnough) {
  struct Listener {
    int left = 3;
    std::vector<chasqui_kind> kinds;
  } listener;
  chat(R"("max_tokens":20,"ignore_eos":true,"stream":true)");
  const auto listen = [](void* user, const chasqui_event* event) {
    auto& to = *static_cast<Listener*>(user);
    to.kinds.push_back(chasqui_event_kind(event));
    return --to.left == 0 ? 1 : 0;
  };
  EXPECT_EQ(chasqui_run(engine_, listen, &listener), CHASQUI_OK);
  EXPECT_EQ(listener.kinds.size(), 3u);
  EXPECT_EQ(chasqui_running(engine_), 1u);
  EXPECT_EQ(chasqui_run(engine_, listen, &listener), CHASQUI_OK);
  EXPECT_EQ(listener.kinds.back(), CHASQUI_END);
  EXPECT_EQ(chasqui_run(engine_, nullptr, nullptr), CHASQUI_INVALID_REQUEST);
}

}  // namespace
}  // namespace chasqui
