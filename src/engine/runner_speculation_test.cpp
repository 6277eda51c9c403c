// Draft tokens: what the runner does with those that are accepted, and with those that are rejected.
#include "engine/fake_fed_runner.h"
#include "model/heads.h"

namespace chasqui {
namespace {

// The model answers "say: TEXT" with TEXT.
class RunnerSpeculation : public FedRunner {
 protected:
  RequestDraft say(std::string_view text, std::vector<std::string> stop = {}, float temperature = 0) const {
    RequestDraft draft = asking("<|im_start|>user\nsay: " + std::string(text) + "<|im_end|>\n<|im_start|>assistant\n");
    draft.sampling.temperature = temperature;
    draft.stop = std::move(stop);
    return draft;
  }

  // The prompt, and its first token.
  void begin(RequestDraft draft) {
    FedRunner::begin(std::move(draft));
    step();
  }

  // All that it says, a token in each step.
  std::vector<Token> alone(RequestDraft draft) {
    begin(std::move(draft));
    say_all();
    return said();
  }

  static std::vector<Token> part(const std::vector<Token>& tokens, std::size_t from, std::size_t count) {
    return {tokens.begin() + static_cast<std::ptrdiff_t>(from),
            tokens.begin() + static_cast<std::ptrdiff_t>(from + count)};
  }
};

TEST_F(RunnerSpeculation, EachThatIsRightIsATokenMore) {
  const std::vector<Token> tokens = alone(say("one two three four five"));
  begin(say("one two three four five"));
  EXPECT_EQ(step(part(tokens, 1, 3)), 4u) << "three that were right, and the one after them";
  EXPECT_EQ(said(), part(tokens, 0, 5));
}

TEST_F(RunnerSpeculation, TheFirstThatIsWrongEndsIt) {
  const std::vector<Token> tokens = alone(say("one two three four five"));
  for (std::size_t wrong = 0; wrong < 4; ++wrong) {
    begin(say("one two three four five"));
    std::vector<Token> draft_tokens = part(tokens, 1, 4);
    draft_tokens[wrong] = draft_tokens[wrong] + 1;
    EXPECT_EQ(step(draft_tokens, 2), wrong + 1);
    EXPECT_EQ(said(), part(tokens, 0, wrong + 2)) << "the right one in its place";
    say_all();
    EXPECT_EQ(said(), tokens) << "as if nothing had been drafted";
    EXPECT_EQ(text_, "one two three four five");
  }
}

TEST_F(RunnerSpeculation, WithATemperatureTheSameSeedSaysTheSame) {
  const std::vector<Token> tokens = alone(say("one two three four five six", {}, 1.5f));
  begin(say("one two three four five six", {}, 1.5f));
  for (std::size_t n = 0; !result_.samples.back().ends(); ++n) {
    const std::size_t count = std::min<std::size_t>(n % 4, tokens.size() - said().size());
    std::vector<Token> draft_tokens = part(tokens, said().size(), count);
    if (n % 3 == 1 && !draft_tokens.empty()) draft_tokens.back() += 1;
    step(draft_tokens);
  }
  EXPECT_EQ(said(), tokens);
}

TEST_F(RunnerSpeculation, AnAnswerThatEndsSaysNothingAfterIt) {
  const std::vector<Token> tokens = alone(say("one two"));
  begin(say("one two"));
  std::vector<Token> draft_tokens = part(tokens, 1, tokens.size() - 1);
  draft_tokens.insert(draft_tokens.end(), 3, draft_tokens.back());
  EXPECT_EQ(step(draft_tokens), tokens.size() - 1);
  EXPECT_TRUE(result_.samples.back().end_of_generation);

  const std::vector<Token> longer = alone(say("one two three four", {"wo th"}));
  begin(say("one two three four", {"wo th"}));
  draft_tokens = part(longer, 1, longer.size() - 1);
  draft_tokens.insert(draft_tokens.end(), 3, 0);
  step(draft_tokens);
  EXPECT_TRUE(result_.samples.back().stopped);
  EXPECT_EQ(text_, "one t");
}

TEST_F(RunnerSpeculation, AStepThatFailsLeavesTheSlotAsItWas) {
  const std::vector<Token> tokens = alone(say("one two three"));
  begin(say("one two three"));
  const auto before = model_.history(SlotId{0}).size();
  model_.fail_decode(1, DecodeStatus::failed);
  EXPECT_EQ(step(part(tokens, 1, 2)), 0u);
  EXPECT_EQ(model_.history(SlotId{0}).size(), before);
}

// Heads that say what they were told to say.
class TalkingHeads final : public Heads {
 public:
  TokenCount draft_tokens() const override { return 3; }
  void learn(const Batch& batch) override { learned += batch.rows.size(); }
  bool draft(Batch& batch) override {
    for (const BatchPart& part : batch.parts) {
      for (std::int32_t i = 0; i < part.draft_tokens && works; ++i) {
        batch.rows[static_cast<std::size_t>(part.last_row() + 1 + i)].token = says[static_cast<std::size_t>(i)];
      }
    }
    return works;
  }
  std::vector<Token> says;
  std::size_t learned = 0;  // rows
  bool works = true;
};

class HeadedModel final : public Model {
 public:
  explicit HeadedModel(SimModel& model) : model_(model) {}
  const ModelShape& shape() const override { return model_.shape(); }
  DecodeStatus decode(const Batch& batch) override { return model_.decode(batch); }
  std::span<float> logits(std::int32_t row) override { return model_.logits(row); }
  void trim(SlotId slot, TokenCount keep) override { model_.trim(slot, keep); }
  void move(SlotId from, SlotId to) override { model_.move(from, to); }
  void exchange(SlotId a, SlotId b) override { model_.exchange(a, b); }
  KvSnapshotPtr copy_out(SlotId slot, TokenCount from, TokenCount to) override {
    return model_.copy_out(slot, from, to);
  }
  bool restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) override {
    return model_.restore(slot, snapshot, keep);
  }
  bool restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from,
                     TokenCount to) override {
    return model_.restore_piece(slot, snapshot, keep, from, to);
  }
  bool copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) override {
    return model_.copy_piece(source, slot, keep, from, to);
  }
  void request_abort() override { model_.request_abort(); }
  void clear_abort() override { model_.clear_abort(); }
  Heads* heads() override { return &own; }
  TalkingHeads own;

 private:
  SimModel& model_;
};

TEST_F(RunnerSpeculation, HeadsOfTheModelWriteTheirs) {
  const std::vector<Token> tokens = alone(say("one two three four five"));
  HeadedModel model(model_);
  Runner runner{model, *tokenizer_, clock_};
  for (const bool works : {true, false}) {
    model.own.works = works;
    model.own.says = part(tokens, 1, 3);
    FedRunner::begin(say("one two three four five"));
    batch_.clear();
    batch_.trims.push_back(SlotId{0});
    TokenCount position = 0;
    for (const Token token : tokens_) batch_.rows.push_back({token, position++, SlotId{0}, false});
    batch_.rows.back().output = true;
    batch_.parts.push_back({request_.get(), SlotId{0}, 0, position, true});
    runner.run(batch_, result_);
    batch_.clear();
    batch_.drafting.rows.push_back({tokens[0], position, SlotId{0}, true});
    batch_.rows.push_back({tokens[0], position++, SlotId{0}, true});
    for (int i = 0; i < 3; ++i) batch_.rows.push_back({0, position++, SlotId{0}, true});
    batch_.parts.push_back({request_.get(), SlotId{0}, 0, 1, true, 3, 0});
    runner.run(batch_, result_);
    EXPECT_EQ(result_.drafted, works);
    EXPECT_EQ(result_.samples.size(), works ? 4u : 1u);
    EXPECT_EQ(result_.samples.front().token, tokens[1]);
    runner.close(request_->id);
  }
  EXPECT_EQ(model.own.learned, 0u);
}

TEST_F(RunnerSpeculation, HeadsOfTheModelLearnOfWhatWasComputed) {
  HeadedModel model(model_);
  Runner runner{model, *tokenizer_, clock_};
  const auto learned = [&](bool learn, DecodeStatus status) {
    batch_.clear();
    batch_.trims.push_back(SlotId{0});
    for (TokenCount position = 0; position < 5; ++position) batch_.rows.push_back({1, position, SlotId{0}, false});
    batch_.learn = learn;
    if (status != DecodeStatus::ok) model_.fail_decode(1, status);
    model.own.learned = 0;
    runner.run(batch_, result_);
    EXPECT_EQ(result_.status, status);
    return model.own.learned;
  };
  EXPECT_EQ(learned(true, DecodeStatus::ok), 5u);
  EXPECT_EQ(learned(false, DecodeStatus::ok), 0u);
  EXPECT_EQ(learned(true, DecodeStatus::failed), 0u);
}

}  // namespace
}  // namespace chasqui
