// Tokens that a grammar leaves no choice about: what the runner appends to those that it samples.
#include "engine/fake_fed_runner.h"
#include "model/automaton_gate.h"
#include "model/sampling_parts.h"

namespace chasqui {
namespace {

// The model would rather say something else.
class RunnerForced : public FedRunner {
 protected:
  RequestDraft draft_of(std::string_view grammar) {
    Grammar source;
    source.text = grammar;
    auto program = compile_program(source, *tokenizer_, make_token_trie(*tokenizer_));
    CHECK(program, program ? "" : program.error().message);
    auto gate = make_automaton_gate(source, *program, tokenizer_);
    CHECK(gate);
    auto parts = std::make_shared<LlamaSamplingParts>();
    parts->grammar = GrammarGate(std::move(*gate));
    RequestDraft draft = asking("say something else");
    draft.parts = std::move(parts);
    return draft;
  }

  static constexpr const char* kGrammar = R"(root ::= ("{" | "[") "\"key\": " [0-9] ", then the others}")";
};

TEST_F(RunnerForced, AreAppendedToWhatIsSampled) {
  begin(draft_of(kGrammar));
  EXPECT_GT(step(), 4u);
  EXPECT_FALSE(result_.samples.front().forced);
  const int steps = 1 + say_all();
  EXPECT_TRUE(text_.ends_with(", then the others}")) << text_;
  EXPECT_EQ(said().size(), static_cast<std::size_t>(steps + forced_));
  EXPECT_LT(steps, 10);
}

TEST_F(RunnerForced, EndWhereTheAnswerHasToEnd) {
  begin(draft_of(kGrammar));
  say_all();
  const std::string whole = text_;
  for (TokenCount most = 1; most < 12; ++most) {
    RequestDraft draft = draft_of(kGrammar);
    draft.max_tokens = most;
    begin(std::move(draft));
    while (static_cast<TokenCount>(said().size()) < most) step();
    EXPECT_EQ(static_cast<TokenCount>(said().size()), most);
    text_ += runner_.close(request_->id);
    EXPECT_TRUE(whole.starts_with(text_)) << text_;
  }
  RequestDraft draft = draft_of(kGrammar);
  draft.stop = {"ey\""};
  begin(std::move(draft));
  say_all();
  EXPECT_TRUE(result_.samples.back().stopped);
  EXPECT_EQ(result_.samples.back().stop_string, "ey\"");
  EXPECT_EQ(text_.substr(1), "\"k");
}

TEST_F(RunnerForced, AreNoneForRequestsThatCannotHaveThem) {
  for (int kind = 0; kind < 3; ++kind) {
    RequestDraft draft = draft_of(kGrammar);
    if (kind == 0) draft.sampling.chances = 2;
    if (kind == 1) draft.deterministic = true;
    if (kind == 2) draft.parts = nullptr;
    begin(std::move(draft));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(step(), 1u) << kind;
    runner_.close(request_->id);
  }
}

TEST_F(RunnerForced, StopBeforeATokenThatTheRequestHasWeighed) {
  RequestDraft draft = draft_of(kGrammar);
  draft.sampling.logit_bias = {{'e', -1.0f}};
  begin(std::move(draft));
  EXPECT_EQ(step(), 3u) << "a bracket, and \"k";
  say_all();
  EXPECT_NE(text_.find("\"key\": "), text_.npos);
}

// Those that were drafted need no rows of their own, and what follows them is sampled in the same step.
TEST_F(RunnerForced, UseTheRowsOfDraftTokens) {
  begin(draft_of(kGrammar));
  say_all();
  const std::vector<Token> whole = said();
  for (std::size_t right = 0, drafts = 1; right < drafts; ++right) {
    begin(draft_of(kGrammar));
    step();
    std::vector<Token> drafted(whole.begin() + static_cast<std::ptrdiff_t>(said().size()), whole.end());
    drafts = drafted.size();
    ASSERT_LE(drafts, 15u) << "rows with an output";
    drafted[right] += 1;
    EXPECT_GT(step(drafted), right);
    if (!result_.samples.back().ends()) say_all();
    runner_.close(request_->id);
    EXPECT_EQ(said(), whole);
  }
}

}  // namespace
}  // namespace chasqui
