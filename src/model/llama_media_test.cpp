#include "model/llama_media.h"

#include <algorithm>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/llama_tokenizer.h"
#include "model/test_media.h"

namespace chasqui {
namespace {

WeightsPtr weights() {
  static const Result<WeightsPtr> loaded = LlamaWeights::from_file(kTestModels + "random-24m-f16.gguf");
  CHECK(loaded, loaded ? "" : loaded.error().message);
  return *loaded;
}

std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

MediaOptions options(const std::string& name) {
  MediaOptions options;
  options.path = kTestModels + "projectors/mmproj-random-24m" + name + ".gguf";
  return options;
}

std::shared_ptr<const LlamaMedia> reader(const std::string& name = "") {
  auto media = LlamaMedia::make(options(name), *weights(), weights());
  CHECK(media, media ? "" : media.error().message);
  return *media;
}

std::string refusal(const LlamaMedia& media, const std::string& text, const std::vector<MediaFilePtr>& files) {
  const auto prompt = media.read(text, AddSpecial::yes, ParseSpecial::yes, files);
  EXPECT_FALSE(prompt);
  if (prompt) return {};
  EXPECT_EQ(prompt.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(prompt.error().field, "messages");
  return prompt.error().message;
}

TEST(LlamaMedia, SaysWhatItTakes) {
  EXPECT_TRUE(reader()->takes(MediaKind::picture));
  EXPECT_TRUE(reader()->takes(MediaKind::sound));
  EXPECT_TRUE(reader("-mutual")->takes(MediaKind::picture));
  EXPECT_FALSE(reader("-mutual")->takes(MediaKind::sound));
  EXPECT_NE(reader()->marker(), reader()->marker()) << "no client knows it";
}

TEST(LlamaMedia, UnitsStandWhereTheTextHasMarkers) {
  const auto media = reader();
  const MediaPrompt prompt = read_media(*media, {test_picture(), test_sound()});
  ASSERT_TRUE(prompt.units);
  ASSERT_EQ(prompt.units->size(), 2u);
  const auto& [first, second] = std::tie((*prompt.units)[0], (*prompt.units)[1]);
  EXPECT_EQ(first.kind, MediaKind::picture);
  EXPECT_EQ(second.kind, MediaKind::sound);
  EXPECT_EQ(first.positions, 64) << "8 × 8 patches";
  EXPECT_TRUE(first.causal);
  EXPECT_GT(first.begin, 0);
  EXPECT_GT(second.begin, first.begin + first.positions);
  EXPECT_TRUE(fits_prompt(prompt.units, prompt.tokens, weights()->info().vocabulary));
}

TEST(LlamaMedia, TextAloneIsTokenizedAsEver) {
  const auto media = reader();
  const LlamaTokenizer tokenizer(weights());
  const auto prompt = media->read("One two three", AddSpecial::yes, ParseSpecial::yes, {});
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->units, nullptr);
  EXPECT_EQ(prompt->tokens, tokenizer.tokenize("One two three", AddSpecial::yes, ParseSpecial::yes));
}

TEST(LlamaMedia, TheSameFileHasTheSameNumbersAndNoOtherHas) {
  const MediaPrompt once = read_media(*reader(), {test_picture(1)});
  const MediaPrompt again = read_media(*reader(), {test_picture(1)});
  const MediaPrompt other = read_media(*reader(), {test_picture(2)});
  EXPECT_EQ(once.tokens, again.tokens) << "in another process, too";
  EXPECT_NE(once.tokens, other.tokens);
  const MediaPrompt twice = read_media(*reader(), {test_picture(1), test_picture(1)});
  EXPECT_EQ((*twice.units)[0].identity, (*twice.units)[1].identity);
  const MediaPrompt elsewhere = read_media(*reader("-mutual"), {test_picture(1)});
  EXPECT_NE((*once.units)[0].identity, (*elsewhere.units)[0].identity) << "another projector";
}

TEST(LlamaMedia, ALongSoundBecomesSeveralUnits) {
  const auto media = reader();
  const MediaPrompt prompt = read_media(*media, {test_sound(16000 * 31)});
  ASSERT_EQ(prompt.units->size(), 2u);
  EXPECT_NE((*prompt.units)[0].identity, (*prompt.units)[1].identity);
}

TEST(LlamaMedia, ALargePictureBecomesAUnitForEachTileAndOneForAll) {
  const auto media = reader("-tiles");
  const MediaPrompt small = read_media(*media, {test_picture(1, 112, 112)});
  ASSERT_EQ(small.units->size(), 1u);
  const MediaPrompt large = read_media(*media, {test_picture(1, 300, 120)});
  ASSERT_EQ(large.units->size(), 7u) << "six tiles, and the whole";
  for (const MediaUnit& unit : *large.units) EXPECT_EQ(unit.positions, 16) << "8 × 8 patches, 2 × 2 of which are one";
  EXPECT_NE((*large.units)[0].identity, (*large.units)[1].identity);
}

TEST(LlamaMedia, RefusesWhatItCannotRead) {
  const auto media = reader();
  const std::string marker(media->marker());
  EXPECT_NE(refusal(*media, "no marker", {test_picture()}).find("0 of 1"), std::string::npos);
  EXPECT_NE(refusal(*media, marker + marker, {test_picture()}).find("2 of 1"), std::string::npos);
  const auto broken = std::make_shared<MediaFile>(MediaFile{MediaKind::picture, "no picture at all"});
  EXPECT_NE(refusal(*media, marker, {broken}).find("cannot be decoded"), std::string::npos);
  const auto mixed_up = std::make_shared<MediaFile>(MediaFile{MediaKind::sound, test_png(3, 3)});
  EXPECT_NE(refusal(*media, marker, {mixed_up}).find("WAV"), std::string::npos);
  const auto deaf = reader("-mutual");
  EXPECT_NE(refusal(*deaf, std::string(deaf->marker()), {test_sound()}).find("no sounds"), std::string::npos);
}

TEST(LlamaMedia, PicturesOfARequestHaveSoManyPixelsTogether) {
  MediaOptions small = options("");
  small.decoded_bytes_max = 2 * 3 * 50 * 40;
  const auto made = LlamaMedia::make(small, *weights(), weights());
  ASSERT_TRUE(made);
  EXPECT_TRUE(read_media(**made, {test_picture(1), test_picture(2)}).units);
  std::string three;
  for (int i = 0; i < 3; ++i) three += (*made)->marker();
  EXPECT_NE(refusal(**made, three, {test_picture(1), test_picture(2), test_picture(3)}).find("4000 pixels"),
            std::string::npos);
}

TEST(LlamaMedia, WhatWaitsIsCountedWhileAPromptHasIt) {
  const auto media = reader();
  EXPECT_EQ(media->waiting_bytes(), 0u);
  std::vector<MediaPrompt> waiting;
  waiting.push_back(read_media(*media, {test_picture(1)}));
  const std::size_t one = media->waiting_bytes();
  EXPECT_GE(one, 64u * 3 * sizeof(float)) << "at least a pixel of each patch";
  waiting.push_back(read_media(*media, {test_picture(2), test_sound()}));
  EXPECT_GT(media->waiting_bytes(), 2 * one);
  EXPECT_EQ(read_media(*media, {}).units, nullptr) << "text alone keeps nothing";
  waiting.pop_back();
  EXPECT_EQ(media->waiting_bytes(), one);
  waiting.clear();
  EXPECT_EQ(media->waiting_bytes(), 0u);
}

TEST(LlamaMedia, NothingMoreWaitsWhereOthersTakeAllRoom) {
  MediaOptions small = options("");
  small.waiting_bytes_max = 1;
  const auto made = LlamaMedia::make(small, *weights(), weights());
  ASSERT_TRUE(made);
  const LlamaMedia& media = **made;
  std::vector<MediaPrompt> waiting;
  waiting.push_back(read_media(media, {test_picture(1)}));  // alone it is taken
  const auto refused = media.read(media.marker(), AddSpecial::yes, ParseSpecial::yes, std::vector{test_picture(2)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  EXPECT_GT(refused.error().retry_after, Duration::zero());
  EXPECT_TRUE(media.read("text alone", AddSpecial::yes, ParseSpecial::yes, {}));
  waiting.clear();
  EXPECT_TRUE(media.read(media.marker(), AddSpecial::yes, ParseSpecial::yes, std::vector{test_picture(2)}));
}

TEST(LlamaMedia, ExtremeShapesAreReadOrRefused) {
  for (const std::string name : {"", "-mutual"}) {
    const auto media = reader(name);
    for (const auto& [width, height] : {std::pair{1u, 1u}, {1u, 300u}, {16'384u, 1u}, {1u, 16'384u}, {2000u, 3u}}) {
      const auto file = std::make_shared<MediaFile>(MediaFile{MediaKind::picture, test_png(width, height)});
      const auto prompt =
          media->read(media->marker(), AddSpecial::yes, ParseSpecial::yes, std::vector{MediaFilePtr(file)});
      if (!prompt) {
        EXPECT_FALSE(prompt.error().message.empty());
      }
    }
  }
  const auto media = reader();
  for (const std::uint32_t samples : {320u, 321u, 399u}) {
    const MediaPrompt prompt = read_media(*media, {test_sound(samples)});
    EXPECT_GT(prompt.units->front().positions, 0);
  }
}

TEST(LlamaMedia, RefusesAProjectorOfAnotherModel) {
  static const Result<WeightsPtr> demo = LlamaWeights::from_file(CHASQUI_SOURCE_DIR "/models/demo/chasqui-demo.gguf");
  ASSERT_TRUE(demo);
  const auto media = LlamaMedia::make(options(""), **demo, *demo);
  ASSERT_FALSE(media);
  EXPECT_NE(media.error().message.find("mismatch"), std::string::npos) << media.error().message;
  MediaOptions missing;
  missing.path = "/nowhere/mmproj.gguf";
  EXPECT_FALSE(LlamaMedia::make(missing, *weights(), weights()));
}

// Each would keep 340 MiB of address space.
TEST(LlamaMedia, NothingStaysOfAProjectorThatDoesNotFit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers map memory of their own";
#endif
  static const Result<WeightsPtr> demo = LlamaWeights::from_file(CHASQUI_SOURCE_DIR "/models/demo/chasqui-demo.gguf");
  ASSERT_TRUE(demo);
  const auto mapped_after = [](int refusals) {
    for (int i = 0; i < refusals; ++i) EXPECT_FALSE(LlamaMedia::make(options(""), **demo, *demo));
    return mapped_bytes();
  };
  const std::size_t before = mapped_after(1);
  EXPECT_LT(mapped_after(8), before + (std::size_t{256} << 20));
}

std::unique_ptr<LlamaModel> model_for(const LlamaMedia& media) {
  auto model =
      LlamaModel::make(weights(), {.slots = 2, .cells = 1024, .rows_max = 512, .threads = 1, .media = media.encoder()});
  CHECK(model, model ? "" : model.error().message);
  return std::move(*model);
}

TEST(LlamaMedia, AnswersDependOnWhatIsSeenAndHeard) {
  for (const std::string name : {"", "-mutual"}) {
    const auto media = reader(name);
    const auto model = model_for(*media);
    std::vector<std::vector<float>> logits;
    for (const std::uint32_t seed : {1u, 1u, 2u}) {
      logits.push_back(compute_media(*model, read_media(*media, {test_picture(seed)}), 512));
      model->trim(SlotId{0}, 0);
    }
    EXPECT_LT(difference(logits[0], logits[1]), 1e-5);
    EXPECT_GT(difference(logits[0], logits[2]), 1e-3);
  }
}

TEST(LlamaMedia, ACausalUnitIsTheSameInPieces) {
  const auto media = reader();
  const auto model = model_for(*media);
  const MediaPrompt prompt = read_media(*media, {test_picture(3), test_sound()});
  const std::vector<float> at_once = compute_media(*model, prompt, 512);
  model->trim(SlotId{0}, 0);
  EXPECT_LT(difference(at_once, compute_media(*model, prompt, 13)), kClose);
}

TEST(LlamaMedia, TheProjectorAttendsAsTheModelDoes) {
  std::vector<MediaUnit> units;
  std::vector<EncodedMediaPtr> encoded;
  for (const FlashAttention choice : {FlashAttention::on, FlashAttention::off, FlashAttention::off}) {
    MediaOptions wanted = options("");
    wanted.flash_attention = choice;
    const auto media = LlamaMedia::make(wanted, *weights(), weights());
    ASSERT_TRUE(media);
    units.push_back(read_media(**media, {test_picture(1)}).units->front());
    const auto encoding = (*media)->encoder()->encode(units.back(), 0);
    ASSERT_TRUE(encoding);
    encoded.push_back(encoding->rows);
  }
  EXPECT_NE(encoded[0]->values, encoded[1]->values) << "its sums are others";
  EXPECT_LT(difference(encoded[0]->values, encoded[1]->values), kClose);
  EXPECT_EQ(encoded[1]->values, encoded[2]->values);
  EXPECT_NE(units[0].identity, units[1].identity) << "what is kept of one is not what the other reads";
}

TEST(LlamaMedia, AnEncodedUnitIsKeptForItsTenant) {
  const auto media = reader();
  const auto encode = [&](const MediaPrompt& prompt, std::uint32_t tenant) {
    const auto encoding = media->encoder()->encode(prompt.units->front(), tenant);
    CHECK(encoding);
    return encoding->fresh;
  };
  const MediaPrompt one = read_media(*media, {test_picture(1)});
  EXPECT_TRUE(encode(one, 0));
  EXPECT_FALSE(encode(read_media(*media, {test_picture(1)}), 0));
  EXPECT_TRUE(encode(one, 7)) << "another tenant cannot tell that it was sent before";
  EXPECT_TRUE(encode(read_media(*media, {test_picture(2)}), 0));
  EXPECT_EQ(media->encoder()->bytes(), 3u * 64 * 288 * sizeof(float));
  media->encoder()->forget(0);
  EXPECT_EQ(media->encoder()->bytes(), 64u * 288 * sizeof(float));
  EXPECT_FALSE(encode(one, 7));
  EXPECT_TRUE(encode(one, 0)) << "nothing is left of it";
}

}  // namespace
}  // namespace chasqui
