// Tokens whose masks take longer than there is time for after a step: the answers are those of a runner that has it.
#include "engine/fake_fed_runner.h"
#include "model/automaton_gate.h"
#include "model/sampling_parts.h"

namespace chasqui {
namespace {

class RunnerMasks : public FedRunner {
 protected:
  RequestDraft draft_of(float temperature) {
    Grammar source;
    source.text = R"(root ::= [A-Z] ([a-z]{2,5} | " " [a-z] | [0-9]{1,3} "-"){3,9} ", then more" [0-9a-f]{2,4} "!")";
    auto program = compile_program(source, *tokenizer_, make_token_trie(*tokenizer_));
    CHECK(program);
    auto gate = make_automaton_gate(source, *program, tokenizer_);
    CHECK(gate);
    auto parts = std::make_shared<LlamaSamplingParts>();
    parts->grammar = GrammarGate(std::move(*gate));
    RequestDraft draft = asking("say something else");
    draft.sampling.temperature = temperature;
    draft.parts = std::move(parts);
    return draft;
  }
  static constexpr std::uint64_t kLittle = 120;
};

TEST_F(RunnerMasks, PutATokenOffAndChangeNothing) {
  for (const float temperature : {0.0f, 2.0f}) {
    runner_.limit_masks(GrammarMasks::kStepWork);
    begin(draft_of(temperature));
    const int steps = say_all();
    const std::vector<Token> whole = said();
    const std::string text = text_;
    runner_.limit_masks(kLittle);
    begin(draft_of(temperature));
    EXPECT_EQ(step(), 0u) << "the first token waits";
    EXPECT_EQ(result_.put_off, std::vector<RequestId>{request_->id});
    EXPECT_EQ(result_.constrained_tokens, 1);
    EXPECT_GT(1 + say_all(), steps);
    EXPECT_EQ(said(), whole);
    EXPECT_EQ(text_, text);
  }
}

// The last chunk of a deterministic prompt is computed again as it was, not its last row alone.
TEST_F(RunnerMasks, TakeAllRowsOfADeterministicPartBack) {
  runner_.limit_masks(kLittle);
  for (const bool deterministic : {false, true}) {
    RequestDraft draft = draft_of(0);
    draft.deterministic = deterministic;
    begin(std::move(draft));
    const auto rows = static_cast<TokenCount>(tokens_.size());
    EXPECT_EQ(step(), 0u);
    EXPECT_EQ(computed_, deterministic ? 0 : rows - 1) << "the model has as many, which step() compares";
    say_all();
    EXPECT_TRUE(result_.samples.back().ends());
    runner_.close(request_->id);
  }
}

TEST_F(RunnerMasks, PutOffWhatFollowsDraftTokens) {
  begin(draft_of(0));
  say_all();
  const std::vector<Token> whole = said();
  runner_.limit_masks(kLittle);
  bool waited_behind = false;
  for (std::size_t wrong = 0; wrong < 5; ++wrong) {
    begin(draft_of(0));
    for (int steps = 0; steps < 300 && said().size() < whole.size(); ++steps) {
      const std::size_t done = said().size();
      std::vector<Token> drafted;
      for (std::size_t i = done; computed_ > 0 && i < std::min(done + 4, whole.size() - 1); ++i) {
        drafted.push_back(i == done + wrong ? whole[i] + 1 : whole[i]);
      }
      step(drafted);
      waited_behind = waited_behind || (result_.samples.size() > 1 && result_.put_off.empty() &&
                                        result_.samples.size() < drafted.size() + 1 && wrong >= 4);
    }
    EXPECT_EQ(said(), whole) << wrong;
    runner_.close(request_->id);
  }
  EXPECT_TRUE(waited_behind) << "a token behind accepted draft tokens was put off";
}

// Its rows tell how likely the prompt was, and would tell that again.
TEST_F(RunnerMasks, DoNotWaitWhereTheRequestTellsItsPrompt) {
  runner_.limit_masks(kLittle);
  begin(draft_of(0));
  batch_.clear();
  batch_.kind = Batch::Kind::prefill;
  batch_.trims.push_back(SlotId{0});
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    batch_.rows.push_back({tokens_[i], static_cast<TokenCount>(i), SlotId{0}, true});
  }
  const auto rows = static_cast<std::int32_t>(tokens_.size());
  batch_.parts.push_back({request_.get(), SlotId{0}, 0, rows, true, 0, 0, true});
  runner_.run(batch_, result_);
  EXPECT_EQ(result_.samples.size(), 1u);
  EXPECT_TRUE(result_.put_off.empty());
}

}  // namespace
}  // namespace chasqui
