#include "engine/drafter.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "model/logit_row.h"
#include "model/sim_model.h"

namespace chasqui {
namespace {

// A SimModel that says what the large one would say: word salad that depends on all tokens before.
class DrafterTest : public testing::Test {
 protected:
  static ModelConfig shape() { return {.slots = 4, .cells = 512, .rows_max = 128, .outputs_max = 4}; }
  std::unique_ptr<SimModel> make_model() {
    return std::make_unique<SimModel>(tokenizer_, shape(), SimOptions{.answer_tokens = 400});
  }

  // A sequence in a slot, of which the draft model has read the first `read` tokens.
  struct Speaker {
    SlotId slot;
    std::vector<Token> tokens;
    RequestPtr request;
  };
  Speaker speaker(std::int32_t slot, std::uint64_t id, TokenCount length) {
    RequestDraft draft;
    draft.prompt = test_prompt(length, id);
    for (Token& token : draft.prompt) token = 100 + token % 200;
    return {SlotId{slot}, draft.prompt, test_request(id, draft)};
  }

  // The last two tokens of each, and draft tokens of what comes; with `read` false also what comes before.
  void draft(const std::vector<Speaker>& speakers, std::int32_t draft_tokens, bool reads = true) {
    for (const Speaker& each : speakers) {
      const auto length = static_cast<TokenCount>(each.tokens.size());
      for (TokenCount i = 0; reads && i < length - 2; ++i) batch_.drafting.reading.push_back(row(each, i, false));
      for (TokenCount i = length - 2; i < length; ++i) batch_.drafting.rows.push_back(row(each, i, i + 1 == length));
      const auto first = static_cast<std::int32_t>(batch_.rows.size());
      batch_.rows.push_back(row(each, length - 1, true));
      for (std::int32_t g = 0; g < draft_tokens; ++g) batch_.rows.push_back({-1, length + g, each.slot, true});
      batch_.parts.push_back({each.request.get(), each.slot, first, 1, true, draft_tokens, 0});
    }
    drafter_.follow(batch_);
    drafter_.draft(batch_, result_, clock_);
  }
  static Row row(const Speaker& speaker, TokenCount position, bool output) {
    return {speaker.tokens[static_cast<std::size_t>(position)], position, speaker.slot, output};
  }

  // What the model says after these tokens, one by one.
  std::vector<Token> says(const std::vector<Token>& tokens, std::int32_t count) {
    const auto model = make_model();
    Batch batch;
    std::vector<Token> out;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      batch.rows.push_back({tokens[i], static_cast<TokenCount>(i), SlotId{0}, i + 1 == tokens.size()});
    }
    for (std::int32_t n = 0; n < count; ++n) {
      EXPECT_EQ(model->decode(batch), DecodeStatus::ok);
      out.push_back(largest(model->logits(static_cast<std::int32_t>(batch.rows.size()) - 1)));
      const TokenCount position = batch.rows.back().position + 1;
      batch.clear();
      batch.rows.push_back({out.back(), position, SlotId{0}, true});
    }
    return out;
  }
  std::vector<Token> draft_tokens_of(std::size_t part) const {
    std::vector<Token> out;
    const BatchPart& of = batch_.parts[part];
    for (std::int32_t g = 0; g < of.draft_tokens; ++g) {
      out.push_back(batch_.rows[static_cast<std::size_t>(of.last_row() + 1 + g)].token);
    }
    return out;
  }

  std::shared_ptr<const SimTokenizer> tokenizer_ = std::make_shared<const SimTokenizer>();
  ManualClock clock_;
  std::unique_ptr<SimModel> owned_ = make_model();
  SimModel* const model_ = owned_.get();
  Drafter drafter_{std::move(owned_), model_->shape().vocabulary};
  Batch batch_;
  BatchResult result_;
};

TEST_F(DrafterTest, WritesWhatItsModelSaysIntoTheRows) {
  const std::vector<Speaker> speakers = {speaker(0, 1, 9), speaker(1, 2, 20), speaker(3, 3, 5)};
  draft(speakers, 3);
  EXPECT_TRUE(result_.drafted);
  for (std::size_t i = 0; i < speakers.size(); ++i) EXPECT_EQ(draft_tokens_of(i), says(speakers[i].tokens, 3));
}

TEST_F(DrafterTest, DraftsAfterPlacesOfAPicture) {
  Speaker one = speaker(0, 1, 9);
  one.tokens[2] = one.tokens[3] = -7;
  std::vector<Token> known = one.tokens;
  known[2] = known[3] = 0;
  draft({one}, 3);
  EXPECT_TRUE(result_.drafted);
  EXPECT_EQ(draft_tokens_of(0), says(known, 3));
}

TEST_F(DrafterTest, TakesBackRejectedDraftTokens) {
  Speaker one = speaker(0, 1, 9);
  draft({one}, 4);
  batch_.clear();
  one.tokens.push_back(150);  // not what it had drafted
  draft({one}, 4, false);
  EXPECT_TRUE(result_.drafted);
  EXPECT_EQ(draft_tokens_of(0), says(one.tokens, 4));
}

TEST_F(DrafterTest, GoesWithASequenceThatChangesItsSlot) {
  Speaker one = speaker(2, 1, 9);
  Speaker two = speaker(0, 2, 9);
  draft({two, one}, 2);
  batch_.clear();
  batch_.trims = {SlotId{0}};
  batch_.moves = {{SlotId{2}, SlotId{0}}};
  one.slot = SlotId{0};
  one.tokens.push_back(draft_tokens_of(0).empty() ? 0 : 150);
  draft({one}, 2, false);
  EXPECT_TRUE(result_.drafted);
  EXPECT_EQ(draft_tokens_of(0), says(one.tokens, 2));
  EXPECT_EQ(model_->history(SlotId{2}).size(), 0u);
}

TEST_F(DrafterTest, AFailureIsSaidAndLeavesWhatItHeld) {
  Speaker one = speaker(0, 1, 9);
  draft({one}, 2);
  batch_.clear();
  one.tokens.push_back(150);
  model_->fail_decode(1, DecodeStatus::failed);
  draft({one}, 2, false);
  EXPECT_FALSE(result_.drafted);
  result_.clear();
  batch_.clear();
  draft({one}, 2);  // from the beginning, as the scheduler has it then
  EXPECT_TRUE(result_.drafted);
  EXPECT_EQ(draft_tokens_of(0), says(one.tokens, 2));
}

}  // namespace
}  // namespace chasqui
