// libchasqui as a program uses it, with the simulated model: exact histories, and what a session saves.
#include "engine/session_engine.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "engine/fake_client.h"
#include "model/fake_messages.h"

namespace chasqui {
namespace {

RequestDraft short_answer() {
  RequestDraft how;
  how.sampling.temperature = 0;
  how.max_tokens = 20;
  return how;
}

RequestDraft endless_answer() {
  RequestDraft how = short_answer();
  how.max_tokens = -1;
  how.sampling.ignore_eos = true;
  return how;
}

class SessionEngineTest : public testing::Test {
 protected:
  // Steps take their time, of a clock that they alone move: where computing costs nothing, no copy is worth its time,
  // and nothing is taken from the cache. A gated engine also waits for the test before each of them.
  explicit SessionEngineTest(bool gated = false) : engine_(open(gated ? &gate_ : nullptr, clock_)) {}
  ~SessionEngineTest() override { gate_.open(); }

  static std::unique_ptr<SessionEngine> open(StepGate* gate, StepClock& clock) {
    SimOptions options;
    options.spend = [gate, &clock](Duration time) {
      if (gate != nullptr) gate->pass();
      clock.advance(time);
    };
    SessionEngineConfig config;
    config.clock = &clock;
    config.model.slots = 2;
    config.model.cells = 2 * 2048;
    config.model.rows_max = 64;
    auto made = SessionEngine::open(load_sim(options), config);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  std::string tell(const SessionId& id, RequestDraft how, Event* end = nullptr) {
    std::string said;
    const auto event = engine_->answer(id, std::move(how), [&said](std::string_view text) { said += text; });
    EXPECT_TRUE(event) << event.error().message;
    if (end != nullptr && event) *end = *event;
    return said;
  }
  // The answer to a prompt in a session of its own.
  std::string tell_alone(const std::vector<Token>& prompt, RequestDraft how) {
    how.prompt = prompt;
    how.use_cache = false;
    RequestLimits limits;
    limits.vocabulary = engine_->engine().shape().vocabulary;
    limits.context = engine_->engine().shape().cells_per_slot;
    const auto request = make_request(engine_->engine().next_id(), std::move(how), limits, {});
    EXPECT_TRUE(engine_->engine().submit(*request));
    std::string said;
    while (const auto event = engine_->next()) said += event->text;
    return said;
  }
  const Session& at(const SessionId& id) { return **engine_->find(id); }

  StepGate gate_;
  StepClock clock_;
  std::unique_ptr<SessionEngine> engine_;
};

class GatedSessionEngineTest : public SessionEngineTest {
 protected:
  GatedSessionEngineTest() : SessionEngineTest(true) {}

  // A session that has begun to speak, and stays in the middle of it until the gate opens.
  SessionId speaking(std::string question) {
    const SessionId id = *engine_->create();
    EXPECT_TRUE(engine_->append(id, user_message(std::move(question))));
    EXPECT_TRUE(engine_->generate(id, endless_answer()));
    gate_.allow(30);
    EXPECT_TRUE(engine_->next());
    return id;
  }
};

TEST_F(SessionEngineTest, TenTurnsComputeOnlyWhatIsNew) {
  const SessionId id = *engine_->create();
  TokenCount known = 0;
  for (int turn = 0; turn < 10; ++turn) {
    ASSERT_TRUE(engine_->append(id, user_message("question number " + std::to_string(turn))));
    const std::vector<Token> history = at(id).tokens;
    Event end;
    const std::string said = tell(id, short_answer(), &end);
    EXPECT_LE(end.usage.prompt - end.usage.cached, end.usage.prompt - known + 8) << "turn " << turn;
    EXPECT_EQ(end.usage.cached > 0, turn > 0);
    ASSERT_EQ(at(id).length(), end.usage.prompt + end.usage.completion) << "all that was sampled is kept";
    known = at(id).length();
    const std::vector<Token> prompt(at(id).tokens.begin(), at(id).tokens.begin() + end.usage.prompt);
    EXPECT_TRUE(std::equal(history.begin(), history.end(), prompt.begin()));
    EXPECT_EQ(said, tell_alone(prompt, short_answer())) << "turn " << turn;
  }
}

TEST_F(SessionEngineTest, AChatReadsAsTheTemplateWouldWriteIt) {
  const SessionId id = *engine_->create();
  Chat chat;
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(engine_->append(id, user_message("say: turn " + std::to_string(turn))));
    Event end;
    const std::string said = tell(id, short_answer(), &end);
    ASSERT_EQ(end.reason, FinishReason::stop);
    ChatMessage answer;
    answer.role = "assistant";
    answer.content = said;
    chat.messages.push_back(user_message("say: turn " + std::to_string(turn)));
    chat.messages.push_back(answer);
  }
  chat.add_generation_prompt = false;
  std::string whole = *engine_->model().chat_template->render(chat);
  ASSERT_TRUE(whole.ends_with("<|im_end|>\n"));
  whole.pop_back();  // what the template puts behind an answer comes with the next message
  EXPECT_EQ(detokenize(*engine_->model().tokenizer, at(id).tokens), whole);
}

TEST_F(GatedSessionEngineTest, ForksOfAGeneratingSessionGoTheirOwnWay) {
  const SessionId id = speaking(std::string(800, 'w'));
  std::vector<SessionId> forks;
  for (int i = 0; i < 3; ++i) {
    forks.push_back(*engine_->fork(id));
    ASSERT_TRUE(engine_->append(forks.back(), user_message("branch " + std::to_string(i))));
  }
  EXPECT_EQ(at(id).state, Session::State::generating);
  EXPECT_EQ(at(forks[0]).tokens.size(), at(forks[1]).tokens.size());
  gate_.open();
  for (const SessionId& fork : forks) {
    Event end;
    tell(fork, short_answer(), &end);
    EXPECT_GE(end.usage.cached, 750) << "the parent has computed it";
  }
  ASSERT_TRUE(engine_->end(id));
  while (engine_->next()) {
  }
  EXPECT_FALSE(engine_->find(id));
}

TEST_F(GatedSessionEngineTest, ACancelledAnswerStaysAndCanGoOn) {
  const SessionId id = speaking("tell me everything");
  const auto again = engine_->generate(id, endless_answer());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::conflict);
  ASSERT_TRUE(engine_->cancel(id));
  gate_.open();
  std::optional<Event> last;
  while (auto event = engine_->next()) last = std::move(event);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->reason, FinishReason::cancelled);
  EXPECT_GT(last->usage.completion, 0);
  EXPECT_EQ(at(id).length(), last->usage.prompt + last->usage.completion);
  Event end;
  tell(id, short_answer(), &end);
  EXPECT_EQ(end.usage.prompt, last->usage.prompt + last->usage.completion) << "the same answer goes on";
  EXPECT_EQ(at(id).chat->messages.size(), 2u);
}

TEST_F(SessionEngineTest, SeveralSessionsSpeakAtOnce) {
  std::vector<SessionId> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(*engine_->create());
    ASSERT_TRUE(engine_->append(ids.back(), "story number " + std::to_string(i)));
    ASSERT_TRUE(engine_->generate(ids.back(), short_answer()));
  }
  int ended = 0;
  while (const auto event = engine_->next()) ended += event->kind == Event::Kind::finished ? 1 : 0;
  EXPECT_EQ(ended, 5);
  for (const SessionId& id : ids) EXPECT_EQ(at(id).state, Session::State::idle);
}

TEST_F(SessionEngineTest, MistakesAreErrorsAndLeaveTheSessionAsItWas) {
  EXPECT_EQ(engine_->append(SessionId{"sess_none"}, "x").error().code, ErrorCode::not_found);
  const SessionId id = *engine_->create();
  EXPECT_FALSE(engine_->generate(id)) << "nothing is there to answer to";
  ASSERT_TRUE(engine_->append(id, "abc"));
  RequestDraft how;
  how.sampling.temperature = -1;
  EXPECT_EQ(engine_->generate(id, how).error().field, "temperature");
  EXPECT_FALSE(engine_->append(id, user_message("Hi")));
  EXPECT_EQ(at(id).length(), 3);
  EXPECT_EQ(at(id).state, Session::State::idle);
  EXPECT_FALSE(engine_->next()) << "no session generates, and none waits";
}

// --- several workers, and a folder

class SessionEngineFolder : public testing::Test {
 protected:
  SessionEngineFolder() {
    std::string name = testing::TempDir() + "chasqui.XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~SessionEngineFolder() override { std::filesystem::remove_all(folder_); }

  Result<std::unique_ptr<SessionEngine>> open(std::size_t workers = 1) const {
    SessionEngineConfig config;
    config.model.slots = 2;
    config.model.cells = 2 * 2048;
    config.model.rows_max = 64;
    config.workers = workers;
    config.cache_folder = folder_;
    return SessionEngine::open(load_sim({}), config);
  }
  // How much of a session's prompt was known.
  static TokenCount cached(SessionEngine& engine, const std::string& text) {
    const auto id = engine.create();
    EXPECT_TRUE(id && engine.append(*id, text));
    const auto end = engine.answer(*id, short_answer(), [](std::string_view) {});
    EXPECT_TRUE(end);
    return end ? end->usage.cached : -1;
  }

  std::string folder_;
};

TEST_F(SessionEngineFolder, WhatWasComputedOutlivesTheProgram) {
  const std::string story = "a story " + std::string(500, '.');
  EXPECT_EQ(cached(**open(), story), 0);
  EXPECT_GT(cached(**open(), story), 400);
}

TEST_F(SessionEngineFolder, NoTwoProgramsShareAFolder) {
  const auto first = open();
  ASSERT_TRUE(first);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

TEST_F(SessionEngineFolder, EachOfManySessionsStaysWithOneOfTheWorkers) {
  const auto engine = open(3);
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ((*engine)->engine().workers(), 3u);
  std::vector<SessionId> ids;
  for (int i = 0; i < 9; ++i) ids.push_back(*(*engine)->create());
  for (int turn = 0; turn < 3; ++turn) {
    for (const SessionId& id : ids) {
      ASSERT_TRUE((*engine)->append(id, " turn " + std::to_string(turn)));
      ASSERT_TRUE((*engine)->generate(id, short_answer()));
    }
    int ended = 0;
    while (const auto event = (*engine)->next()) {
      if (event->kind != Event::Kind::finished) continue;
      ++ended;
      if (turn > 0) {
        EXPECT_GT(event->usage.cached, 0) << "a session is where its history is";
      }
    }
    EXPECT_EQ(ended, 9);
  }
  for (std::size_t worker = 0; worker < 3; ++worker) {
    EXPECT_GT((*engine)->engine().metrics(worker).generation_tokens.value(), 0u) << worker;
  }
}

TEST(SessionEngineWorkers, AreAtLeastOne) {
  SessionEngineConfig config;
  config.workers = 0;
  EXPECT_FALSE(SessionEngine::open(load_sim({}), config));
}

}  // namespace
}  // namespace chasqui
