// Tokens that a grammar leaves no choice about: what the runner appends to those that it samples.
#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "engine/runner.h"
#include "model/automaton_gate.h"
#include "model/sampling_parts.h"
#include "model/sim_model.h"

namespace chasqui {
namespace {

// One slot of a SimModel that would rather say something else, fed by hand.
class RunnerForced : public testing::Test {
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
    RequestDraft draft;
    draft.prompt = tokenizer_->tokenize("say something else", AddSpecial::no, ParseSpecial::no);
    draft.sampling.temperature = 0;
    draft.sampling.seed = 7;
    draft.parts = std::move(parts);
    return draft;
  }

  void begin(RequestDraft draft) {
    RequestLimits limits;
    limits.vocabulary = tokenizer_->vocabulary();
    limits.context = 512;
    request_ = test_request(++ids_, std::move(draft), limits);
    tokens_ = request_->prompt;
    computed_ = 0;
    text_.clear();
    forced_ = 0;
  }

  // All rows that there are, and these draft tokens; how many tokens that brought.
  std::size_t step(const std::vector<Token>& draft_tokens = {}) {
    batch_.clear();
    batch_.kind = computed_ == 0 ? Batch::Kind::prefill : Batch::Kind::decode;
    if (computed_ == 0) batch_.trims.push_back(SlotId{0});
    const auto rows = static_cast<TokenCount>(tokens_.size()) - computed_;
    TokenCount position = computed_;
    for (; position < computed_ + rows; ++position) {
      batch_.rows.push_back({tokens_[static_cast<std::size_t>(position)], position, SlotId{0}, false});
    }
    batch_.rows.back().output = true;
    for (const Token draft_token : draft_tokens) batch_.rows.push_back({draft_token, position++, SlotId{0}, true});
    batch_.parts.push_back({request_.get(), SlotId{0}, 0, rows, true, static_cast<std::int32_t>(draft_tokens.size())});
    runner_.run(batch_, result_);
    computed_ += rows;
    bool before = true;
    for (const Sample& sample : result_.samples) {
      tokens_.push_back(sample.token);
      text_ += sample.text;
      forced_ += sample.forced ? 1 : 0;
      EXPECT_TRUE(before || (sample.forced && !sample.computed))
          << "behind what has no row there are forced ones alone";
      before = sample.computed;
      computed_ += sample.computed ? 1 : 0;
    }
    EXPECT_EQ(model_.history(SlotId{0}).size(), static_cast<std::size_t>(computed_));
    return result_.samples.size();
  }

  int say_all() {
    int steps = 0;
    for (bool ends = false; !ends && steps < 100; ++steps) {
      step();
      ends = result_.samples.back().ends();
    }
    text_ += runner_.close(request_->id);
    return steps;
  }

  static constexpr const char* kGrammar = R"(root ::= ("{" | "[") "\"key\": " [0-9] ", then the others}")";

  std::shared_ptr<const SimTokenizer> tokenizer_ = std::make_shared<const SimTokenizer>();
  ManualClock clock_;
  SimModel model_{tokenizer_,
                  {.slots = 2, .cells = 1024, .rows_max = 256, .outputs_max = 16},
                  {.step = milliseconds(3), .spend = [this](Duration d) { clock_.advance(d); }}};
  Runner runner_{model_, *tokenizer_, clock_};
  Batch batch_;
  BatchResult result_;
  RequestPtr request_;
  std::vector<Token> tokens_;
  TokenCount computed_ = 0;
  std::string text_;
  int forced_ = 0;
  std::uint64_t ids_ = 0;
};

TEST_F(RunnerForced, AreAppendedToWhatIsSampled) {
  begin(draft_of(kGrammar));
  EXPECT_GT(step(), 4u);
  EXPECT_FALSE(result_.samples.front().forced);
  const int steps = 1 + say_all();
  EXPECT_TRUE(text_.ends_with(", then the others}")) << text_;
  EXPECT_EQ(tokens_.size() - request_->prompt.size(), static_cast<std::size_t>(steps + forced_));
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
    while (static_cast<TokenCount>(tokens_.size() - request_->prompt.size()) < most) step();
    EXPECT_EQ(static_cast<TokenCount>(tokens_.size() - request_->prompt.size()), most);
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
  const std::vector<Token> whole(tokens_.begin() + static_cast<std::ptrdiff_t>(request_->prompt.size()), tokens_.end());
  for (std::size_t right = 0, drafts = 1; right < drafts; ++right) {
    begin(draft_of(kGrammar));
    step();
    const auto said = static_cast<std::ptrdiff_t>(tokens_.size() - request_->prompt.size());
    std::vector<Token> drafted(whole.begin() + said, whole.end());
    drafts = drafted.size();
    ASSERT_LE(drafts, 15u) << "rows with an output";
    drafted[right] += 1;
    EXPECT_GT(step(drafted), right);
    if (!result_.samples.back().ends()) say_all();
    runner_.close(request_->id);
    EXPECT_EQ(std::vector<Token>(tokens_.begin() + static_cast<std::ptrdiff_t>(request_->prompt.size()), tokens_.end()),
              whole);
  }
}

}  // namespace
}  // namespace chasqui
