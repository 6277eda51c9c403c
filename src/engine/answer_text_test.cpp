#include "engine/answer_text.h"

#include <set>

#include <gtest/gtest.h>

#include "engine/session_table.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

constexpr Token kEnd = SimTokenizer::kImEnd;

TEST(AnswerText, TheTextOfAnAnswerIsTheSameHoweverMuchOfItWasSaidBeforeItsEnd) {
  const SimTokenizer tokenizer;
  SessionLimits limits;
  limits.tokens = 100;
  SessionTable table(limits, tokenizer);
  const std::vector<Token> answer = {100, 101, 102, kEnd};
  std::set<std::string> texts;
  for (std::size_t said = 0; said <= answer.size(); ++said) {
    SessionSettings settings;
    settings.ttl = seconds(100);
    const auto made = table.create({1, 0}, settings, {{1, 2, 3}, nullptr}, TimePoint{});
    ASSERT_TRUE(made);
    const SessionId id = (*made)->id;
    {
      auto use = table.take(1, id, TimePoint{});
      ASSERT_TRUE(use);
      use->begin(RequestId{7}, {{4}, std::make_shared<const ChatHistory>()});
    }
    Event event;
    event.request = RequestId{7};
    event.tokens = 1;
    for (std::size_t i = 0; i < said; ++i) {
      event.token = answer[i];
      table.said(event);
    }
    event.kind = Event::Kind::finished;
    event.generated = answer;
    table.finished(event, TimePoint{});
    const Session& session = **table.find(1, id);
    ASSERT_EQ(session.chat->messages.size(), 1u);
    EXPECT_EQ(session.chat->end, ChatHistory::End::ended_answer);
    texts.insert(session.chat->messages[0]->content);
    EXPECT_EQ(session.tokens, (std::vector<Token>{1, 2, 3, 4, 100, 101, 102, kEnd}));
  }
  EXPECT_EQ(texts.size(), 1u);
  EXPECT_FALSE(texts.begin()->empty());
}

}  // namespace
}  // namespace chasqui
