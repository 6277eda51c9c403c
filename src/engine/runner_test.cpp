#include "engine/runner.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "model/sim_model.h"

namespace chasqui {
namespace {

// One slot of a SimModel that answers "say: TEXT" with TEXT, fed by hand.
class RunnerTest : public testing::Test {
 protected:
  RequestPtr say(std::string_view text, std::vector<std::string> stop = {}, bool special_pieces = false) {
    RequestDraft draft;
    draft.prompt =
        tokenizer_->tokenize("<|im_start|>user\nsay: " + std::string(text) + "<|im_end|>\n<|im_start|>assistant\n",
                             AddSpecial::no, ParseSpecial::yes);
    draft.sampling.temperature = 0;
    draft.stop = std::move(stop);
    draft.special_pieces = special_pieces;
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
    for (int i = 0; i < 100 && !sample().end_of_generation && !sample().stopped; ++i) {
      decode(request);
      text += sample().text;
    }
    return text;
  }

  std::shared_ptr<const SimTokenizer> tokenizer_ = std::make_shared<const SimTokenizer>();
  ManualClock clock_;
  SimModel model_{tokenizer_,
                  {.slots = 2, .cells = 1024, .rows_max = 256},
                  {.step = milliseconds(3), .spend = [this](Duration d) { clock_.advance(d); }}};
  Runner runner_{model_, *tokenizer_, clock_};
  Batch batch_;
  BatchResult result_;
  TokenCount position_ = 0;
  std::uint64_t ids_ = 0;
};

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

TEST_F(RunnerTest, AFailureGivesNoSamplesButStillTrimsAndTellsTheTime) {
  prefill(say("one"));
  model_.fail_decode(1, DecodeStatus::failed);
  const TimePoint before = clock_.now();
  const BatchResult& result = prefill(say("two"), true, true);
  EXPECT_EQ(result.status, DecodeStatus::failed);
  EXPECT_TRUE(result.samples.empty());
  EXPECT_TRUE(model_.history(SlotId{0}).empty());
  EXPECT_GT(result.finished, before);
  EXPECT_EQ(runner_.open_sequences(), 1u) << "only the first, which nobody has closed";
}

TEST_F(RunnerTest, MeasuresTheDecodeAlone) {
  const RequestPtr request = say("one");
  const BatchResult& result = prefill(request);
  EXPECT_EQ(result.compute, milliseconds(3) + microseconds(5) * static_cast<int>(request->prompt.size()));
  EXPECT_EQ(result.finished, clock_.now());
}

}  // namespace
}  // namespace chasqui
