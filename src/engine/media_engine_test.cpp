// Pictures and sounds through a whole engine: random-24m with a random projector, as a server has it.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "core/fake_requests.h"
#include "engine/engine.h"
#include "model/loaded_model.h"
#include "model/test_files.h"

namespace chasqui {
namespace {

const std::string kModels = CHASQUI_BINARY_DIR "/models/";

class MediaEngine {
 public:
  explicit MediaEngine(const std::string& projector)
      : model_(load(projector)), engine_(config(), context(), model_.tokenizer, clock_, wakeup_) {}

  struct Answer {
    std::vector<Token> tokens;
    Event end;
  };
  Answer ask(const std::vector<MediaFilePtr>& files, const std::string& question, std::uint32_t tenant = 0) {
    std::string text = "See";
    for (std::size_t i = 0; i < files.size(); ++i) text += " " + std::string(model_.media->marker());
    auto prompt = model_.media->read(text + " and say: " + question, AddSpecial::yes, ParseSpecial::yes, files);
    CHECK(prompt, prompt ? "" : prompt.error().message);
    RequestDraft draft;
    draft.prompt = std::move(prompt->tokens);
    draft.media = std::move(prompt->units);
    draft.sampling.temperature = 0;
    draft.max_tokens = 12;
    draft.keep_tokens = true;
    draft.tenant.id = tenant;
    RequestLimits limits;
    limits.vocabulary = engine_.shape().vocabulary;
    limits.context = engine_.shape().cells_per_slot;
    limits.rows_max = engine_.shape().rows_max;
    const RequestPtr request = test_request(engine_.next_id().value, std::move(draft), limits, clock_.now());
    CHECK(engine_.submit(request).has_value());
    Answer answer;
    for (bool ended = false; !ended;) {
      pollfd ready{wakeup_.fd(), POLLIN, 0};
      CHECK(::poll(&ready, 1, 60'000) == 1, "nothing comes");
      wakeup_.acknowledge();
      std::vector<Event> events;
      engine_.take_events(events);
      for (Event& event : events) {
        if (event.kind != Event::Kind::finished) continue;
        answer.tokens = event.generated;
        answer.end = std::move(event);
        ended = true;
      }
    }
    return answer;
  }
  std::uint64_t encoded() const { return engine_.count(&EngineMetrics::media_encoded); }

 private:
  static LoadedModel load(const std::string& projector) {
    LoadOptions options;
    options.media.path = kModels + "projectors/" + projector + ".gguf";
    auto model = load_llama(kModels + "random-24m-f16.gguf", options);
    CHECK(model, model ? "" : model.error().message + " (make test-models)");
    return std::move(*model);
  }
  static EngineConfig config() {
    EngineConfig config;
    config.reuse.cache.bytes = std::size_t{1} << 26;
    return config;
  }
  std::unique_ptr<Model> context() const {
    auto context = model_.make({.slots = 2, .cells = 2048, .rows_max = 256, .threads = 1});
    CHECK(context, context ? "" : context.error().message);
    return std::move(*context);
  }

  LoadedModel model_;
  RealClock clock_;
  Wakeup wakeup_;
  Engine engine_;
};

MediaFilePtr picture(std::uint32_t seed) {
  return std::make_shared<MediaFile>(MediaFile{MediaKind::picture, test_png(60, 50, seed)});
}

MediaFilePtr sound() { return std::make_shared<MediaFile>(MediaFile{MediaKind::sound, test_wav(8000)}); }

TEST(MediaEngine, APictureIsEncodedOnceAndReadOnce) {
  MediaEngine engine("mmproj-random-24m");
  const auto first = engine.ask({picture(1)}, "one");
  EXPECT_EQ(first.end.reason, FinishReason::length);
  EXPECT_EQ(first.end.usage.media_encoded, 1);
  const auto again = engine.ask({picture(1)}, "one");
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_GT(again.end.usage.cached, 64);
  EXPECT_EQ(again.end.usage.media_encoded + again.end.usage.media_reused, 0);
  const auto other_words = engine.ask({picture(1)}, "something else");
  EXPECT_GT(other_words.end.usage.cached, 64);
  EXPECT_EQ(engine.encoded(), 1u);
}

TEST(MediaEngine, AnotherPictureAndAnotherTenantReadTheirOwn) {
  MediaEngine engine("mmproj-random-24m");
  const auto one = engine.ask({picture(1)}, "one");
  const auto two = engine.ask({picture(2)}, "one");
  EXPECT_NE(one.tokens, two.tokens) << "with these random weights";
  EXPECT_LT(two.end.usage.cached, 64);
  const auto other_tenant = engine.ask({picture(1)}, "one", 5);
  EXPECT_EQ(other_tenant.tokens, one.tokens);
  EXPECT_EQ(other_tenant.end.usage.cached, 0);
  EXPECT_EQ(other_tenant.end.usage.media_encoded, 1);
}

TEST(MediaEngine, WhatWasEncodedIsKeptWhereThePromptBeginsOtherwise) {
  MediaEngine engine("mmproj-random-24m");
  engine.ask({picture(1)}, "one");
  const auto behind = engine.ask({picture(2), picture(1), sound()}, "one");
  EXPECT_EQ(behind.end.usage.media_encoded, 2);
  EXPECT_EQ(behind.end.usage.media_reused, 1);
}

TEST(MediaEngine, PositionsThatSeeEachOtherAreComputedTogether) {
  MediaEngine engine("mmproj-random-24m-mutual");
  const auto first = engine.ask({picture(1)}, "one");
  const auto again = engine.ask({picture(1)}, "one");
  EXPECT_EQ(first.end.reason, FinishReason::length);
  EXPECT_EQ(first.tokens, again.tokens);
}

}  // namespace
}  // namespace chasqui
