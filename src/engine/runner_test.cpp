#include "engine/runner.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "model/sim_model.h"

namespace chasqui {
namespace {

// One slot of a SimModel that answers "say: TEXT" with TEXT, fed by hand.
class RunnerTest : public testing::Test {
 protected:
  RequestPtr say(std::string_view text, std::vector<std::string> stop = {}, bool special_pieces = false,
                 std::int32_t indent_min = 0) {
    RequestDraft draft;
    draft.prompt =
        tokenizer_->tokenize("<|im_start|>user\nsay: " + std::string(text) + "<|im_end|>\n<|im_start|>assistant\n",
                             AddSpecial::no, ParseSpecial::yes);
    draft.sampling.temperature = 0;
    draft.stop = std::move(stop);
    draft.special_pieces = special_pieces;
    draft.indent_min = indent_min;
    RequestLimits limits;
    limits.vocabulary = tokenizer_->vocabulary();
    limits.context = 512;
    position_ = 0;
    return test_request(++ids_, std::move(draft), limits);
  }

  // The whole prompt, after emptying slot 0 when `trim` says so.
  const BatchResult& prefill(const RequestPtr& request, bool samples = true, bool trim = false) {
    batch_.clear();
    batch_.kind = Batch::Kind::prefill;
    if (trim) batch_.trims.push_back(SlotId{0});
    for (const Token token : request->prompt) batch_.rows.push_back({token, position_++, SlotId{0}, false});
    batch_.rows.back().output = samples;
    batch_.parts.push_back({request.get(), SlotId{0}, 0, position_, samples});
    return run();
  }
  const BatchResult& decode(const RequestPtr& request) {
    const Token token = result_.samples.front().token;
    batch_.clear();
    batch_.kind = Batch::Kind::decode;
    batch_.rows.push_back({token, position_++, SlotId{0}, true});
    batch_.parts.push_back({request.get(), SlotId{0}, 0, 1, true});
    return run();
  }
  const BatchResult& run() {
    runner_.run(batch_, result_);
    return result_;
  }
  const Sample& sample() const { return result_.samples.at(0); }

  // Decodes until an end; the text of all samples.
  std::string speak(const RequestPtr& request) {
    std::string text = sample().text;
    for (int i = 0; i < 100 && !sample().ends(); ++i) {
      decode(request);
      text += sample().text;
    }
    return text;
  }

  std::shared_ptr<const SimTokenizer> tokenizer_ = std::make_shared<const SimTokenizer>();
  ManualClock clock_;
  SimModel model_{tokenizer_,
                  {.slots = 2, .cells = 1024, .rows_max = 256, .outputs_max = 256},
                  {.step = milliseconds(3), .spend = [this](Duration d) { clock_.advance(d); }}};
  Runner runner_{model_, *tokenizer_, clock_};
  Batch batch_;
  BatchResult result_;
  TokenCount position_ = 0;
  std::uint64_t ids_ = 0;
};

TEST_F(RunnerTest, TellsHowLikelyTheTokensOfAPromptWere) {
  const RequestPtr request = say("one two");
  batch_.kind = Batch::Kind::prefill;
  for (const Token token : request->prompt) batch_.rows.push_back({token, position_++, SlotId{0}, true});
  BatchPart& part = batch_.parts.emplace_back(BatchPart{request.get(), SlotId{0}, 0, position_, true});
  part.tells = true;
  run();
  ASSERT_EQ(result_.prompts.size(), 1u);
  EXPECT_EQ(result_.prompts[0].from, 1);
  ASSERT_EQ(result_.prompts[0].chances.size(), request->prompt.size() - 1);
  for (std::size_t i = 0; i < result_.prompts[0].chances.size(); ++i) {
    EXPECT_EQ(result_.prompts[0].chances[i].front().token, request->prompt[i + 1]);
    EXPECT_LE(result_.prompts[0].chances[i].front().logprob, 0.0f);
  }
  EXPECT_EQ(result_.samples.size(), 1u) << "and goes on";
}

TEST_F(RunnerTest, SamplesTheRowThatAsksForItAndNoOther) {
  const RequestPtr request = say("one two three");
  EXPECT_TRUE(prefill(request, false).samples.empty());
  EXPECT_EQ(runner_.open_sequences(), 0u) << "nothing is kept for who has said nothing";
  prefill(say("one two three"), true, true);
  ASSERT_EQ(result_.samples.size(), 1u);
  EXPECT_EQ(sample().request, RequestId{2});
  EXPECT_EQ(sample().text, "o") << "the first token: words are tokens with the space before them";
  EXPECT_EQ(runner_.open_sequences(), 1u);
}

TEST_F(RunnerTest, SpeaksUntilTheEndOfGenerationWhichIsNoText) {
  const RequestPtr request = say("one two three.");
  prefill(request);
  EXPECT_EQ(speak(request), "one two three.");
  EXPECT_TRUE(sample().end_of_generation);
  EXPECT_EQ(sample().text, "");
}

TEST_F(RunnerTest, WritesControlTokensWhenTheRequestWantsThem) {
  const RequestPtr request = say("one", {}, true);
  prefill(request);
  EXPECT_EQ(speak(request), "one<|im_end|>");
  EXPECT_TRUE(sample().end_of_generation);
}

TEST_F(RunnerTest, FindsAStopStringAndCutsTheTextBeforeIt) {
  const RequestPtr request = say("one two three four", {"wo th"});
  prefill(request);
  EXPECT_EQ(speak(request), "one t");
  EXPECT_TRUE(sample().stopped);
  EXPECT_EQ(sample().stop_string, "wo th");
  EXPECT_EQ(runner_.close(request->id), "");
}

TEST_F(RunnerTest, EndsAtALineThatIsIndentedTooLittle) {
  const RequestPtr request = say("if:\n  yes\nno more", {"\nno less"}, false, 2);
  prefill(request);
  EXPECT_EQ(speak(request), "if:\n  yes\n");
  EXPECT_TRUE(sample().outdented);
  EXPECT_EQ(runner_.close(request->id), "") << "nor what a stop string held back";
}

TEST_F(RunnerTest, ClosingGivesBackWhatWasHeldAndForgetsTheSequence) {
  const RequestPtr request = say("one two three", {"one two four"});
  prefill(request);
  for (int token = 1; token <= 3; ++token) {  // o, n, e, two
    decode(request);
    EXPECT_EQ(sample().text, "") << "might still become the stop string";
  }
  EXPECT_EQ(runner_.close(request->id), "one two");
  EXPECT_EQ(runner_.open_sequences(), 0u);
  EXPECT_EQ(runner_.close(request->id), "") << "closing twice is harmless";
  EXPECT_EQ(runner_.close(RequestId{999}), "");
}

TEST_F(RunnerTest, EmptiesReleasedSlotsBeforeItComputes) {
  prefill(say("something long to leave behind"));
  const RequestPtr request = say("one");
  prefill(request, true, true);  // the model CHECKs that positions start at 0 again
  EXPECT_EQ(speak(request), "one");
}

TEST_F(RunnerTest, WhatFillsUpAPartIsForgotten) {
  const RequestPtr request = say("four words in all");
  batch_.clear();
  batch_.kind = Batch::Kind::prefill;
  for (const Token token : request->prompt) batch_.rows.push_back({token, position_++, SlotId{0}, false});
  batch_.rows.back().output = true;
  for (int i = 0; i < 5; ++i) batch_.rows.push_back({request->prompt.back(), position_ + i, SlotId{0}, false});
  batch_.parts.push_back({request.get(), SlotId{0}, 0, position_, true, 5});
  run();
  EXPECT_EQ(speak(request), "four words in all") << "the model refuses positions that do not follow";
}

TEST_F(RunnerTest, AFailureGivesNoSamplesButStillTrimsAndTellsTheTime) {
  prefill(say("one"));
  model_.fail_decode(1, DecodeStatus::failed);
  const TimePoint before = clock_.now();
  const BatchResult& result = prefill(say("two"), true, true);
  EXPECT_EQ(result.status, DecodeStatus::failed);
  EXPECT_TRUE(result.samples.empty());
  EXPECT_TRUE(model_.history(SlotId{0}).empty());
  EXPECT_GT(result.finished, before);
  EXPECT_EQ(runner_.open_sequences(), 1u) << "only the first, which was not closed";
}

TEST_F(RunnerTest, AStepOfCopiesAloneComputesNothing) {
  const RequestPtr request = say("one");
  prefill(request);
  const std::uint64_t decodes = model_.decodes();
  const TimePoint before = clock_.now();
  batch_.clear();
  batch_.saves = {{SlotId{0}, position_}};
  const BatchResult& result = run();
  EXPECT_EQ(result.status, DecodeStatus::ok);
  ASSERT_EQ(result.snapshots.size(), 1u);
  EXPECT_EQ(result.snapshots[0]->tokens(), position_);
  EXPECT_TRUE(result.samples.empty());
  EXPECT_EQ(result.compute, Duration::zero());
  EXPECT_EQ(result.finished, before);
  EXPECT_EQ(model_.decodes(), decodes);
}

// All of it in one step: out of slot 0, which is emptied, back into it, from there to slot 1, and on with the answer.
TEST_F(RunnerTest, CopiesOutBeforeItEmptiesAndBringsBackBeforeItMoves) {
  const RequestPtr request = say("one two");
  prefill(request);
  const Token first = sample().token;
  batch_.clear();
  batch_.saves = {{SlotId{0}, position_}};
  const KvSnapshotPtr earlier = run().snapshots.at(0);

  batch_.clear();
  batch_.kind = Batch::Kind::decode;
  batch_.saves = {{SlotId{0}, position_}};
  batch_.trims = {SlotId{0}};
  batch_.restores = {{request->id, SlotId{0}, earlier, position_}};
  batch_.moves = {{SlotId{0}, SlotId{1}}};
  batch_.rows = {{first, position_, SlotId{1}, true}};
  batch_.parts = {{request.get(), SlotId{1}, 0, 1, true}};
  run();
  EXPECT_EQ(result_.status, DecodeStatus::ok);
  EXPECT_TRUE(result_.not_restored.empty());
  EXPECT_EQ(result_.snapshots.at(0)->size(), earlier->size());
  EXPECT_TRUE(model_.history(SlotId{0}).empty());
  EXPECT_EQ(model_.history(SlotId{1}).size(), request->prompt.size() + 1);
  EXPECT_EQ(sample().text, "n");
}

TEST_F(RunnerTest, APartOfASnapshotIsEnough) {
  const RequestPtr request = say("one two");
  prefill(request);
  batch_.clear();
  batch_.saves = {{SlotId{0}, position_}};
  const KvSnapshotPtr snapshot = run().snapshots.at(0);
  const TokenCount keep = position_ - 1;
  batch_.clear();
  batch_.kind = Batch::Kind::prefill;
  batch_.restores = {{request->id, SlotId{1}, snapshot, keep}};
  batch_.rows = {{request->prompt.back(), keep, SlotId{1}, true}};
  const RequestPtr again = say("one two");
  batch_.parts = {{again.get(), SlotId{1}, 0, 1, true}};
  run();
  EXPECT_EQ(sample().text, "o");
}

TEST_F(RunnerTest, WhatCannotBeBroughtBackStopsTheRowsAndNamesItsPlace) {
  SimModel pool(tokenizer_, {.slots = 3, .cells = 100, .unified = true, .rows_max = 64}, {});
  Runner runner(pool, *tokenizer_, clock_);
  const RequestPtr request = say("one");
  const auto length = static_cast<TokenCount>(request->prompt.size());
  for (const Token token : request->prompt) batch_.rows.push_back({token, position_++, SlotId{0}, false});
  runner.run(batch_, result_);
  batch_.clear();
  batch_.saves = {{SlotId{0}, length}};
  runner.run(batch_, result_);
  const KvSnapshotPtr snapshot = result_.snapshots.at(0);
  const auto too_large = std::make_shared<KvSnapshot>(100 * sizeof(Token), 100);  // no room beside slot 0

  batch_.clear();
  batch_.restores = {{RequestId{8}, SlotId{1}, too_large, 100}, {RequestId{9}, SlotId{2}, snapshot, length}};
  batch_.moves = {{SlotId{0}, SlotId{1}}};
  batch_.rows = {{5, length, SlotId{2}, true}};
  runner.run(batch_, result_);
  EXPECT_EQ(result_.status, DecodeStatus::aborted);
  EXPECT_EQ(result_.not_restored, (std::vector<std::size_t>{0}));
  EXPECT_TRUE(result_.samples.empty());
  EXPECT_EQ(pool.decodes(), 1u);
  EXPECT_EQ(pool.history(SlotId{2}).size(), request->prompt.size()) << "the other one was brought back";
  EXPECT_EQ(pool.history(SlotId{1}).size(), request->prompt.size()) << "and the move was made";
}

TEST_F(RunnerTest, MeasuresTheDecodeAlone) {
  const RequestPtr request = say("one");
  const BatchResult& result = prefill(request);
  EXPECT_EQ(result.compute, milliseconds(3) + microseconds(5) * static_cast<int>(request->prompt.size()));
  EXPECT_EQ(result.finished, clock_.now());
}

}  // namespace
}  // namespace chasqui
