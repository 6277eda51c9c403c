// Pictures of a model whose positions have several dimensions (M-RoPE).
#include <gtest/gtest.h>

#include "model/test_media.h"

namespace chasqui {
namespace {

class LlamaMrope : public testing::Test {
 protected:
  static WeightsPtr weights() {
    static const Result<WeightsPtr> loaded = LlamaWeights::from_file(kTestModels + "random-mrope.gguf");
    CHECK(loaded, loaded ? "" : loaded.error().message);
    return *loaded;
  }
  static std::shared_ptr<const LlamaMedia> reader() {
    MediaOptions options;
    options.path = kTestModels + "projectors/mmproj-random-mrope.gguf";
    auto media = LlamaMedia::make(options, *weights(), weights());
    CHECK(media, media ? "" : media.error().message);
    return *media;
  }
  static std::unique_ptr<LlamaModel> make(const LlamaMedia& media) {
    auto model = LlamaModel::make(
        weights(), {.slots = 3, .cells = 3 * 1024, .rows_max = 512, .threads = 1, .media = media.encoder()});
    CHECK(model, model ? "" : model.error().message);
    return std::move(*model);
  }

  // Two pictures that are not square, and a question.
  MediaPrompt prompt(const std::string& question = " what is it?") const {
    return read_media(*media_, {test_picture(1, 300, 120), test_picture(2, 90, 200)}, question);
  }
  TokenCount behind(const MediaPrompt& prompt, std::size_t unit) const {
    return (*prompt.units)[unit].begin + (*prompt.units)[unit].positions;
  }

  const std::shared_ptr<const LlamaMedia> media_ = reader();
  const std::unique_ptr<LlamaModel> model_ = make(*media_);
};

TEST_F(LlamaMrope, APictureHasAPlaceForEachPartAndTakesAsManyPositionsAsItIsWideOrHigh) {
  const MediaPrompt two = prompt();
  ASSERT_EQ(two.units->size(), 2u);
  const MediaUnit& wide = (*two.units)[0];
  EXPECT_EQ(wide.positions, 11 * 4);
  EXPECT_EQ(wide.advance, 11);
  const MediaUnit& high = (*two.units)[1];
  EXPECT_EQ(high.positions, 3 * 7);
  EXPECT_EQ(high.advance, 7);
}

TEST_F(LlamaMrope, APictureIsTheSameInPieces) {
  const MediaPrompt two = prompt();
  const std::vector<float> at_once = compute_media(*model_, two);
  EXPECT_LT(difference(at_once, compute_media(*model_, two, 7, 1)), kClose);
  const MediaPrompt other = read_media(*media_, {test_picture(1, 300, 120), test_picture(3, 90, 200)});
  EXPECT_GT(difference(at_once, compute_media(*model_, other, 512, 2)), kClose) << "it is looked at";
}

TEST_F(LlamaMrope, AnotherQuestionGoesOnBehindThePicture) {
  const MediaPrompt first = prompt();
  const MediaPrompt second = prompt(" and where was it made, by whom?");
  const std::vector<float> fresh = compute_media(*model_, second, 512, 1);
  compute_media(*model_, first);
  for (const std::size_t unit : {1u, 0u}) {
    model_->trim(SlotId{0}, behind(first, unit));
    EXPECT_LT(difference(fresh, compute_media(*model_, second, 512, 0, behind(first, unit))), kClose);
  }
}

TEST_F(LlamaMrope, CopiesOfASlotGoOnAsItWould) {
  const MediaPrompt two = prompt();
  const auto tokens = static_cast<TokenCount>(two.tokens.size());
  const std::vector<float> fresh = compute_media(*model_, two);
  const KvSnapshotPtr copy = model_->snapshot(SlotId{0}, tokens);
  ASSERT_TRUE(copy);
  for (const TokenCount keep : {behind(two, 1), behind(two, 0), (*two.units)[0].begin}) {
    ASSERT_TRUE(model_->restore(SlotId{1}, *copy, keep));
    EXPECT_LT(difference(fresh, compute_media(*model_, two, 512, 1, keep)), kClose) << keep;
    model_->trim(SlotId{1}, 0);
  }
  model_->move(SlotId{0}, SlotId{2});
  const Token next = best(fresh);
  const std::vector<float> moved = run(*model_, 2, tokens, std::span(&next, 1));
  ASSERT_TRUE(model_->restore(SlotId{0}, *copy, tokens));
  EXPECT_LT(difference(moved, run(*model_, 0, tokens, std::span(&next, 1))), kClose);
}

TEST_F(LlamaMrope, APartOfAPictureIsCopiedAndExchanged) {
  const MediaPrompt two = prompt();
  const std::vector<float> fresh = compute_media(*model_, two);
  const TokenCount begin = (*two.units)[0].begin;
  const TokenCount half = begin + 20;
  const auto read_half = [&](std::int32_t slot) {
    for (TokenCount at = 0; at < half;) {
      const Batch batch = next_rows(*model_, two, at, 20, slot);
      ASSERT_EQ(model_->decode(batch), DecodeStatus::ok);
      at += static_cast<TokenCount>(batch.rows.size());
    }
  };
  read_half(1);
  EXPECT_FALSE(model_->snapshot(SlotId{1}, half - 1)) << "it holds one place more";
  const KvSnapshotPtr copy = model_->snapshot(SlotId{1}, half);
  ASSERT_TRUE(copy);
  ASSERT_TRUE(model_->restore(SlotId{2}, *copy, half));
  EXPECT_LT(difference(fresh, compute_media(*model_, two, 512, 2, half)), kClose);
  model_->exchange(SlotId{1}, SlotId{2});
  EXPECT_LT(difference(fresh, compute_media(*model_, two, 512, 2, half)), kClose) << "the half one is there now";
  const Token next = best(fresh);
  EXPECT_LT(difference(run(*model_, 1, static_cast<TokenCount>(two.tokens.size()), std::span(&next, 1)),
                       run(*model_, 2, static_cast<TokenCount>(two.tokens.size()), std::span(&next, 1))),
            kClose);
}

TEST_F(LlamaMrope, ADecodeThatIsAbortedLeavesThePlacesBefore) {
  const MediaPrompt two = prompt();
  const std::vector<float> fresh = compute_media(*model_, two);
  const TokenCount begin = (*two.units)[0].begin;
  ASSERT_EQ(model_->decode(next_rows(*model_, two, 0, 512, 1)), DecodeStatus::ok);
  const Batch first = next_rows(*model_, two, begin, 20, 1);
  model_->request_abort();
  EXPECT_EQ(model_->decode(first), DecodeStatus::aborted);
  model_->clear_abort();
  ASSERT_EQ(model_->decode(first), DecodeStatus::ok);
  model_->request_abort();
  EXPECT_EQ(model_->decode(next_rows(*model_, two, begin + 20, 512, 1)), DecodeStatus::ok)
      << "a part behind the first is not cut: all of the picture would be gone";
  model_->clear_abort();
  EXPECT_LT(difference(fresh, compute_media(*model_, two, 512, 1, behind(two, 0))), kClose);
}

TEST_F(LlamaMrope, APictureThatWasCutIsNotGoneOnWith) {
  const MediaPrompt two = prompt();
  compute_media(*model_, two);
  const TokenCount begin = (*two.units)[0].begin;
  model_->trim(SlotId{0}, begin + 5);
  Batch batch = next_rows(*model_, two, begin + 5, 512, 0);
  EXPECT_EQ(model_->decode(batch), DecodeStatus::failed);
  EXPECT_FALSE(compute_media(*model_, two, 512, 0, begin).empty()) << "but from its beginning";
}

TEST_F(LlamaMrope, TextBesideAPictureIsWhereItBelongs) {
  const MediaPrompt two = prompt();
  const auto tokens = static_cast<TokenCount>(two.tokens.size());
  const std::vector<Token> text(30, 77);
  const Token seen = best(compute_media(*model_, two));
  const Token said = best(run(*model_, 1, 0, text));
  const std::vector<float> alone = run(*model_, 0, tokens, std::span(&seen, 1));
  model_->trim(SlotId{0}, tokens);
  Batch both;
  add_rows(both, 0, tokens, std::span(&seen, 1));
  add_rows(both, 1, 30, std::span(&said, 1));
  ASSERT_EQ(model_->decode(both), DecodeStatus::ok);
  EXPECT_LT(difference(alone, copy(model_->logits(0))), kClose);
}

}  // namespace
}  // namespace chasqui
