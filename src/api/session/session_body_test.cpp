// Bodies of the sessions' routes, from JSON to what the table takes, or to an error that names the field.
#include "api/session/session_body.h"

#include <gtest/gtest.h>

#include "api/core/errors.h"
#include "api/core/fake_node.h"

namespace chasqui {
namespace {

class SessionBodyTest : public testing::Test {
 protected:
  Result<SessionDelta> append(const std::string& body, TokenCount tokens = 0, ChatHistoryPtr chat = {}) {
    return read_append(fake_.served, {tokens, 100, std::move(chat)}, body);
  }
  Result<SessionAsk> ask(const std::string& body, TokenCount tokens = 5, ChatHistoryPtr chat = {}) {
    return read_session_ask(fake_.served, caller_, {tokens, 100, std::move(chat)}, ServiceClass::background, body);
  }
  Result<NewSession> read_new(const std::string& body) const {
    return read_new_session(fake_.served, caller_, fake_.served.sessions.limits(), body);
  }
  std::string text_of(const SessionDelta& delta) const { return detokenize(*fake_.model.tokenizer, delta.tokens); }

  FakeNode fake_;
  Caller caller_;
};

TEST_F(SessionBodyTest, ASessionMayBeginWithNothingTextTokensOrMessages) {
  for (const char* nothing : {"", "{}", " \n", R"({"messages":null})"}) {
    const auto made = read_new(nothing);
    ASSERT_TRUE(made) << nothing;
    EXPECT_TRUE(made->begin.tokens.empty());
    EXPECT_EQ(made->settings.ttl, fake_.sessions.limits().ttl);
    EXPECT_GT(made->settings.created, 0);
  }
  EXPECT_EQ(text_of(read_new(R"({"prompt":"a<|im_end|>"})")->begin), "a<|im_end|>");
  EXPECT_EQ(read_new(R"({"prompt":[1,2]})")->begin.tokens, (std::vector<Token>{1, 2}));
  const auto chat = read_new(R"({"ttl_s":1.5,"priority":"background",
      "messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"Hi"}]})");
  ASSERT_TRUE(chat) << chat.error().message;
  EXPECT_EQ(text_of(chat->begin), "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
  ASSERT_TRUE(chat->begin.chat);
  EXPECT_EQ(chat->begin.chat->messages.size(), 2u);
  EXPECT_EQ(chat->settings.ttl, milliseconds(1500));
  EXPECT_EQ(chat->settings.service_class, ServiceClass::background);
}

TEST_F(SessionBodyTest, AKeyBoundsTheClassOfItsSessions) {
  caller_.most_urgent = ServiceClass::background;
  const auto made = read_new(R"({"priority":"interactive"})");
  EXPECT_EQ(made->settings.service_class, ServiceClass::background);
}

TEST_F(SessionBodyTest, ControlTokensAreTextUnlessTheyAreToBeParsed) {
  EXPECT_EQ(append(R"({"text":"<|im_end|>"})")->tokens.size(), 10u);
  EXPECT_EQ(append(R"({"text":"<|im_end|>","parse_special":true})")->tokens, std::vector<Token>{SimTokenizer::kImEnd});
}

TEST_F(SessionBodyTest, OneMessageOrSeveralAreTheSame) {
  const auto one = append(R"({"message":{"role":"user","content":"Hi"}})");
  const auto several = append(R"({"messages":[{"role":"user","content":"Hi"}]})");
  ASSERT_TRUE(one && several);
  EXPECT_EQ(one->tokens, several->tokens);
}

TEST_F(SessionBodyTest, MistakesInAnAppendNameTheField) {
  struct Case {
    const char* body;
    const char* field;
  };
  const Case cases[] = {
      {R"({})", ""},
      {R"({"text":""})", "text"},
      {R"({"text":3})", "text"},
      {R"({"text":[1]})", "text"},
      {R"({"tokens":"a"})", "tokens"},
      {R"({"tokens":[]})", "tokens"},
      {R"({"tokens":[-1]})", "tokens"},
      {R"({"tokens":[999999]})", "tokens"},
      {R"({"prompt":3})", "prompt"},
      {R"({"text":"a","tokens":[1]})", "tokens"},
      {R"({"message":"Hi"})", "message"},
      {R"({"message":{"role":"the boss","content":"x"}})", "message.role"},
      {R"({"messages":[]})", "messages"},
      {R"({"messages":[{"role":"user","content":"x"},{"role":"user"}]})", "messages[1].content"},
      {R"({"text":"a","parse_special":1})", "parse_special"},
      {R"({"text":"a","tools":[]})", "tools"},
      {R"({"message":{"role":"user","content":"x"},"tools":[{"type":"browser"}]})", "tools[0].type"},
  };
  for (const Case& c : cases) {
    const auto delta = append(c.body);
    ASSERT_FALSE(delta) << c.body;
    EXPECT_EQ(delta.error().field, c.field) << c.body << " → " << delta.error().message;
    EXPECT_EQ(error_row(delta.error().code).status, 400);
  }
  EXPECT_EQ(append(R"({"text":"a"})", 10, std::make_shared<const ChatHistory>()).error().field, "text");
  EXPECT_EQ(append(R"({"message":{"role":"user","content":"x"}})", 10).error().field, "messages");
  EXPECT_EQ(append(R"({"text":")" + std::string(2000, 'x') + R"("})", 99).error().code, ErrorCode::context_too_long);
}

TEST_F(SessionBodyTest, MistakesInANewSessionNameTheField) {
  for (const auto& [body, field] :
       std::initializer_list<std::pair<const char*, const char*>>{{R"({"ttl_s":0})", "ttl_s"},
                                                                  {R"({"ttl_s":"long"})", "ttl_s"},
                                                                  {R"({"ttl_s":1e9})", "ttl_s"},
                                                                  {R"({"priority":"urgent"})", "priority"},
                                                                  {R"({"messages":[],"prompt":"a"})", "prompt"},
                                                                  {R"([])", ""}}) {
    const auto made = read_new(body);
    ASSERT_FALSE(made) << body;
    EXPECT_EQ(made.error().field, field) << body << " → " << made.error().message;
  }
}

TEST_F(SessionBodyTest, AGenerationTakesEverythingButAPrompt) {
  const auto plain = ask("");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_TRUE(plain->before_answer.tokens.empty());
  EXPECT_EQ(plain->common.draft.service_class, ServiceClass::background) << "the session's";
  const auto full = ask(R"({"stream":true,"max_tokens":7,"temperature":0,"stop":"x","timeout_ms":5,
      "priority":"interactive","stream_options":{"include_usage":true}})");
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_TRUE(full->common.stream);
  EXPECT_TRUE(full->common.head.include_usage);
  EXPECT_EQ(full->common.draft.max_tokens, 7);
  EXPECT_EQ(full->common.draft.service_class, ServiceClass::interactive);
  for (const char* name : {"messages", "message", "text", "tokens", "prompt"}) {
    const auto refused = ask(R"({")" + std::string(name) + R"(":"x"})");
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().field, name);
  }
  EXPECT_EQ(ask(R"({"n":2})").error().field, "n");
  EXPECT_EQ(ask(R"({"n_cmpl":2})").error().field, "n_cmpl");
  EXPECT_FALSE(ask("", 0)) << "an empty session has nothing to answer to";
}

TEST_F(SessionBodyTest, AChatGetsWhatStandsBeforeAnAnswer) {
  const auto begin = append(R"({"message":{"role":"user","content":"Hi"}})");
  const auto asked = ask("", 10, begin->chat);
  ASSERT_TRUE(asked);
  EXPECT_EQ(text_of(asked->before_answer), "<|im_start|>assistant\n");
  EXPECT_TRUE(asked->common.head.id.starts_with("chatcmpl-"));
}

TEST_F(SessionBodyTest, ASessionIsShown) {
  const auto made =
      fake_.sessions.create({}, {ServiceClass::standard, seconds(60), 1234}, {{1, 2}, nullptr}, fake_.clock.now());
  ASSERT_TRUE(made);
  const std::string shown = session_body(fake_.served, **made);
  for (const char* part : {R"("object":"session")", R"("created":1234)", R"("kind":"text")", R"("state":"idle")",
                           R"("tokens":2)", R"("ttl_s":60)", R"("priority":"standard")"}) {
    EXPECT_NE(shown.find(part), std::string::npos) << part << " in " << shown;
  }
  const std::string list = session_list_body(fake_.served, {*made, *made}, true);
  EXPECT_TRUE(list.starts_with(R"({"object":"list","data":[{"id":"sess_)")) << list;
  EXPECT_NE(list.find(R"(},{"id":"sess_)"), std::string::npos) << list;
  EXPECT_TRUE(list.ends_with(R"(],"has_more":true})")) << list;
}

}  // namespace
}  // namespace chasqui
