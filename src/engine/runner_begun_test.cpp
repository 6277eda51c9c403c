// Answers that another node has begun: at each place where it may have stopped, the rest is what one node alone says.
#include <algorithm>
#include <functional>
#include <set>

#include "engine/fake_fed_runner.h"
#include "model/automaton_gate.h"
#include "model/sampling_parts.h"

namespace chasqui {
namespace {

class RunnerBegun : public FedRunner {
 protected:
  using Make = std::function<RequestDraft()>;

  RequestDraft saying(std::string_view text) const {
    return asking("<|im_start|>user\nsay: " + std::string(text) + "<|im_end|>\n<|im_start|>assistant\n");
  }

  static void draw_from_all(RequestDraft& draft) {
    draft.sampling.top_k = 0;
    draft.sampling.top_p = 1;
    draft.sampling.min_p = 0;
  }

  static void retold(const std::vector<Event>& events, const std::vector<std::string>& pieces) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].kind, Event::Kind::text);
      EXPECT_EQ(events[i].text, pieces[i]) << "as it was said the first time";
      EXPECT_EQ(events[i].tokens, 1);
      EXPECT_FALSE(events[i].first);
      EXPECT_EQ(events[i].since_last, Duration::zero());
      EXPECT_EQ(events[i].usage.completion, static_cast<TokenCount>(i + 1));
    }
  }

  // The text of each token.
  std::vector<std::string> say_whole(RequestDraft draft, TokenCount most) {
    draft.max_tokens = most;
    begin(std::move(draft));
    std::vector<std::string> pieces;
    while (pieces.empty() || (!result_.samples.back().ends() && std::ssize(said()) < most)) {
      step();
      for (const Sample& sample : result_.samples) pieces.push_back(sample.text);
    }
    text_ += runner_.close(request_->id);
    return pieces;
  }

  // The whole text.
  std::string expect_goes_on(const Make& make, TokenCount most = 40) {
    const std::vector<std::string> pieces = say_whole(make(), most);
    const std::vector<Token> whole = said();
    const std::string text = text_;
    const Sample end = result_.samples.back();
    EXPECT_GT(whole.size(), 2u);
    for (std::size_t n = 1; n < whole.size(); ++n) {
      SCOPED_TRACE("begun: " + std::to_string(n) + " of " + std::to_string(whole.size()));
      RequestDraft draft = make();
      draft.begun.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      draft.max_tokens = most;
      begin(std::move(draft));
      std::vector<Event> events;
      EXPECT_FALSE(runner_.retell(*request_, events));
      EXPECT_EQ(events.size(), n);
      retold(events, pieces);
      for (const Event& event : events) text_ += event.text;
      while (std::ssize(said()) < std::ssize(whole)) step();
      EXPECT_EQ(said(), whole);
      EXPECT_EQ(result_.samples.back().ends(), end.ends());
      EXPECT_EQ(result_.samples.back().stop_string, end.stop_string);
      EXPECT_EQ(result_.samples.back().outdented, end.outdented);
      text_ += runner_.close(request_->id);
      EXPECT_EQ(text_, text);
    }
    EXPECT_EQ(runner_.open_sequences(), 0u);
    return text;
  }

  RequestDraft constrained(std::string_view grammar, float temperature) {
    Grammar source;
    source.text = grammar;
    auto program = compile_program(source, *tokenizer_, make_token_trie(*tokenizer_));
    CHECK(program, program ? "" : program.error().message);
    auto gate = make_automaton_gate(source, *program, tokenizer_);
    CHECK(gate);
    auto parts = std::make_shared<LlamaSamplingParts>();
    parts->grammar = GrammarGate(std::move(*gate));
    RequestDraft draft = asking("say something else");
    draft.sampling.temperature = temperature;
    draft.parts = std::move(parts);
    return draft;
  }
};

TEST_F(RunnerBegun, GoOnGreedily) {
  expect_goes_on([this] { return saying("one two three four, five."); });
}

TEST_F(RunnerBegun, GoOnWithTheDrawsThatAreLeft) {
  std::set<std::string> texts;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    texts.insert(expect_goes_on([this, seed] {
      RequestDraft draft = asking("tell me a story");
      draft.sampling.temperature = 20;
      draw_from_all(draft);
      draft.sampling.seed = seed;
      draft.sampling.ignore_eos = seed % 2 == 0;
      draft.sampling.presence_penalty = seed % 3 == 0 ? 2.0f : 0.0f;
      draft.sampling.min_tokens = 6;
      return draft;
    }));
  }
  EXPECT_EQ(texts.size(), 5u) << "it is the seed that decides";
}

TEST_F(RunnerBegun, GoOnInsideACharacter) {
  expect_goes_on([this] { return saying("h\u00e9 \u65e5\u672c \u2603 \U0001f600!"); });
}

TEST_F(RunnerBegun, GoOnInsideAStopString) {
  expect_goes_on([this] {
    RequestDraft draft = saying("one two three four five");
    draft.stop = {"two three fo", "four seven"};
    return draft;
  });
  expect_goes_on([this] {
    RequestDraft draft = saying("one two three four five");
    draft.stop = {"two three four six"};
    return draft;
  });
}

TEST_F(RunnerBegun, GoOnInsideALineThatIsIndented) {
  expect_goes_on([this] {
    RequestDraft draft = saying("if:\n  yes\nno more");
    draft.indent_min = 2;
    return draft;
  });
}

TEST_F(RunnerBegun, WriteControlTokensAsBefore) {
  expect_goes_on([this] {
    RequestDraft draft = saying("one two");
    draft.special_pieces = true;
    return draft;
  });
}

TEST_F(RunnerBegun, GoOnWithAGrammarAlsoAmidWhatItForces) {
  constexpr const char* kObject = R"(root ::= ("{" | "[") "\"key\": " [0-9] ", then the others" ("}" | " and more}"))";
  expect_goes_on([&] { return constrained(kObject, 0); });
  expect_goes_on([&] { return constrained(R"(root ::= ([a-z]+ " "){3,6} "end")", 0); });
}

// All that it draws is allowed, so that there are no second draws.
TEST_F(RunnerBegun, GoOnWithTheDrawsOfAGrammar) {
  std::set<std::string> texts;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    texts.insert(expect_goes_on([&] {
      RequestDraft draft = constrained("root ::= [a-h]+", 30);
      draw_from_all(draft);
      for (Token letter = 'a'; letter <= 'h'; ++letter) draft.sampling.logit_bias.push_back({letter, 1000});
      draft.sampling.seed = seed;
      return draft;
    }));
  }
  EXPECT_EQ(texts.size(), 5u);
}

// Tokens that no node can have generated: the grammar is no reason to fail.
TEST_F(RunnerBegun, SurviveWhatTheirGrammarDoesNotAllow) {
  RequestDraft draft = constrained(R"(root ::= "{" [0-9] "}")", 0);
  draft.begun = tokenizer_->tokenize("what is this", AddSpecial::no, ParseSpecial::no);
  begin(std::move(draft));
  std::vector<Event> events;
  EXPECT_FALSE(runner_.retell(*request_, events));
  EXPECT_EQ(step(), 1u);
  runner_.close(request_->id);
}

TEST_F(RunnerBegun, SayWhatHasEndedThemAlready) {
  RequestDraft draft = saying("one two three");
  draft.stop = {"two"};
  draft.begun = tokenizer_->tokenize("one two three", AddSpecial::no, ParseSpecial::no);
  const std::size_t all = draft.begun.size();
  begin(std::move(draft));
  std::vector<Event> events;
  const auto end = runner_.retell(*request_, events);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->stop_string, "two");
  EXPECT_LT(events.size(), all);
  EXPECT_EQ(runner_.close(request_->id), "");
}

TEST_F(RunnerBegun, HaveTheTimeForWhatIsNewFromItsFirstToken) {
  RequestDraft draft = saying("one\ntwo three four five");
  draft.predict_ms = 7;  // a step takes 3
  const std::vector<std::string> pieces = say_whole(std::move(draft), 40);
  EXPECT_TRUE(result_.samples.back().time_is_up);
  draft = saying("one\ntwo three four five");
  draft.predict_ms = 7;
  draft.begun = said();
  const std::size_t begun = draft.begun.size();
  begin(std::move(draft));
  std::vector<Event> events;
  EXPECT_FALSE(runner_.retell(*request_, events));
  for (int i = 0; i < 3; ++i) {
    step();
    EXPECT_FALSE(result_.samples.back().time_is_up) << i;
  }
  step();
  EXPECT_TRUE(result_.samples.back().time_is_up) << "and there was a line break before";
  EXPECT_EQ(said().size(), begun + 4);
  runner_.close(request_->id);
}

}  // namespace
}  // namespace chasqui
