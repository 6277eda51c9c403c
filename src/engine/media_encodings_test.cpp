// Pictures are encoded beside the steps of a worker, and not for clients that have left.
#include "engine/media_encodings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "core/fake_media.h"
#include "engine/fake_client.h"

namespace chasqui {
namespace {

// Encodes nothing until it is let, and then what it is asked for. Any thread.
class HeldEncoder final : public MediaEncoder {
 public:
  Result<Encoding> encode(const MediaUnit& unit, std::uint32_t) override {
    gate.pass();
    if (fails) return Error{ErrorCode::model_failure, "the projector failed", ""};
    const auto content = content_of(unit);
    if (const auto kept = kept_.find(content); kept != kept_.end()) return Encoding{kept->second, false};
    auto rows = std::make_shared<EncodedMedia>();
    rows->width = kWidth;
    rows->values.assign(kWidth * static_cast<std::size_t>(unit.positions), static_cast<float>(content));
    kept_[content] = rows;
    return Encoding{rows, true};
  }
  EncodedMediaPtr find(const MediaUnit& unit, std::uint32_t) override {
    const auto kept = kept_.find(content_of(unit));
    return kept == kept_.end() ? nullptr : kept->second;
  }
  bool keep(const MediaUnit& unit, std::uint32_t, EncodedMediaPtr rows) override {
    if (rows->width != kWidth) return false;
    kept_[content_of(unit)] = std::move(rows);
    return true;
  }
  void forget(std::uint32_t tenant) override { forgotten = tenant; }

  StepGate gate;
  std::atomic<bool> fails{false};
  std::atomic<std::uint32_t> forgotten{0};

 private:
  static constexpr std::size_t kWidth = 8;
  static std::uint64_t content_of(const MediaUnit& unit) {
    std::uint64_t content = 0;
    std::memcpy(&content, unit.identity.data(), sizeof content);
    return content;
  }

  std::map<std::uint64_t, EncodedMediaPtr> kept_;  // one worker's thread only
};

struct Pictures {
  explicit Pictures(std::int32_t slots = 4, std::shared_ptr<EncodingFolder> files = nullptr, std::size_t workers = 1)
      : client(config(slots, std::move(files), workers)) {}
  ClientConfig config(std::int32_t slots, std::shared_ptr<EncodingFolder> files, std::size_t workers) {
    ClientConfig config;
    config.slots = slots;
    config.workers = workers;
    config.engine.encodings = std::move(files);
    config.encoder = encoder;
    return config;
  }
  RequestPtr ask(std::uint64_t content, const std::function<void(RequestDraft&)>& change = {}) {
    return ask(FakePrompt().text(5).picture(20, content).text(3), change);
  }
  RequestPtr ask(const FakePrompt& pictures, const std::function<void(RequestDraft&)>& change = {}) {
    const RequestDraft prompt = pictures.draft();
    return client.submit("", 4, [&](RequestDraft& draft) {
      draft.prompt = prompt.prompt;
      for (Token& token : draft.prompt) token = std::min(token, 600);  // of the vocabulary
      draft.media = prompt.media;
      if (change) change(draft);
    });
  }
  std::uint64_t encoded() const { return client.engine.count(&EngineMetrics::media_encoded); }

  std::shared_ptr<HeldEncoder> encoder = std::make_shared<HeldEncoder>();
  FakeClient client;
};

TEST(MediaEncodings, StreamsGoOnMeanwhile) {
  Pictures pictures;
  const RequestPtr seeing = pictures.ask(1);
  pictures.encoder->gate.wait_inside(1);
  const RequestPtr stream = pictures.client.submit("go on", 50, endless);
  pictures.client.read_to_end(stream);
  EXPECT_EQ(pictures.client.of(stream).tokens, 50);
  EXPECT_EQ(pictures.client.of(seeing).finished, 0);
  pictures.encoder->gate.open();
  pictures.client.read_to_end(seeing);
  EXPECT_EQ(pictures.client.of(seeing).tokens, 4);
  EXPECT_EQ(pictures.client.of(seeing).last.usage.media_encoded, 1);
  EXPECT_EQ(pictures.encoded(), 1u);
}

TEST(MediaEncodings, ARequestMayEndWithTheStepThatReadsItsPicture) {
  Pictures pictures;
  pictures.encoder->gate.open();
  const RequestPtr seeing =
      pictures.ask(FakePrompt().text(5).picture(20, 1), [](RequestDraft& draft) { draft.max_tokens = 1; });
  pictures.client.read_to_end(seeing);
  EXPECT_EQ(pictures.client.of(seeing).tokens, 1);
}

TEST(MediaEncodings, WhatIsNotEncodedFailsAlone) {
  Pictures pictures;
  pictures.encoder->fails = true;
  const RequestPtr seeing = pictures.ask(1);
  const RequestPtr stream = pictures.client.submit("go on", 20, endless);
  pictures.encoder->gate.open();
  pictures.client.read_to_end();
  EXPECT_EQ(pictures.client.of(seeing).last.reason, FinishReason::error);
  EXPECT_EQ(pictures.client.of(seeing).last.error.code, ErrorCode::model_failure);
  EXPECT_EQ(pictures.client.of(stream).tokens, 20);
  EXPECT_EQ(pictures.encoded(), 0u);
}

TEST(MediaEncodings, ForAClientThatHasLeftNothingIsEncoded) {
  Pictures pictures;
  const RequestPtr first = pictures.ask(1);
  pictures.encoder->gate.wait_inside(1);
  const RequestPtr left = pictures.ask(2);
  const RequestPtr last = pictures.ask(3);
  pictures.client.engine.cancel(left->id);
  pictures.client.read_to_end(left);
  pictures.encoder->gate.open();
  pictures.client.read_to_end();
  EXPECT_EQ(pictures.client.of(left).last.reason, FinishReason::cancelled);
  EXPECT_EQ(pictures.client.of(last).tokens, 4);
  EXPECT_EQ(pictures.encoded(), 2u);
}

TEST(MediaEncodings, ADeadlinePassesAlsoWhereAllWait) {
  Pictures pictures(1);
  const RequestPtr seeing = pictures.ask(1, [](RequestDraft& draft) { draft.timeout_ms = 50; });
  pictures.client.read_to_end(seeing);
  EXPECT_EQ(pictures.client.of(seeing).last.reason, FinishReason::deadline);
  pictures.encoder->gate.open();
}

TEST(MediaEncodings, WhatATenantHasSentIsForgottenWithItsKv) {
  Pictures pictures;
  pictures.encoder->gate.open();
  EXPECT_TRUE(pictures.client.engine.forget({.id = 7}));
  EXPECT_EQ(pictures.encoder->forgotten, 7u);
}

TEST(MediaEncodings, WhatIsInAFileIsNotEncodedAgain) {
  const FakeFolder folder;
  const auto open = [&] { return EncodingFolder::open(folder.path() + "/encodings", 1 << 20).value(); };
  {
    Pictures before(4, open());
    before.encoder->gate.open();
    before.client.read_to_end(before.ask(1));
  }
  Pictures after(4, open());
  after.encoder->gate.open();
  const RequestPtr same = after.ask(FakePrompt().text(9).picture(20, 1));
  after.client.read_to_end(same);
  EXPECT_EQ(after.client.of(same).last.usage.media_encoded, 0);
  EXPECT_EQ(after.client.of(same).last.usage.media_reused, 1);
  EXPECT_EQ(after.client.engine.count(&EngineMetrics::media_read), 1u);
  const RequestPtr other = after.ask(2);
  after.client.read_to_end(other);
  EXPECT_EQ(after.client.of(other).last.usage.media_encoded, 1);
  EXPECT_EQ(after.client.engine.count(&EngineMetrics::media_read), 1u);
}

TEST(MediaEncodings, AFileOfAnotherWidthIsNotTaken) {
  const FakeFolder folder;
  const std::shared_ptr<EncodingFolder> files = EncodingFolder::open(folder.path() + "/encodings", 1 << 20).value();
  const RequestDraft prompt = FakePrompt().picture(20, 1).draft();
  files->write(0, prompt.media->front(), std::vector<float>(20 * 7));
  Pictures pictures(4, files);
  pictures.encoder->gate.open();
  pictures.client.read_to_end(pictures.ask(1));
  EXPECT_EQ(pictures.encoded(), 1u);
}

TEST(MediaEncodings, WhatATenantHasErasedIsInNoFile) {
  const FakeFolder folder;
  Pictures pictures(4, EncodingFolder::open(folder.path() + "/encodings", 1 << 20).value(), 2);
  pictures.encoder->gate.open();
  const auto as = [](std::uint32_t id) {
    return [id](RequestDraft& draft) { draft.tenant = {.id = id, .lasting = 100 + id}; };
  };
  for (std::uint64_t i = 1; i <= 6; ++i) pictures.ask(i, as(7));
  pictures.ask(7, as(8));
  pictures.client.read_to_end();
  const auto erased = pictures.client.engine.forget({.id = 7, .lasting = 107});
  ASSERT_TRUE(erased);
  auto names = folder.names("encodings");
  std::erase(names, "lock");
  ASSERT_LE(names.size(), 1u) << "the other tenant's, unless it is still being written";
  for (const std::string& name : names) EXPECT_TRUE(name.starts_with("000000000000006c")) << name;
}

TEST(MediaEncodings, AnEngineEndsWithWhatIsOrdered) {
  Pictures pictures;
  for (std::uint64_t i = 0; i < 4; ++i) pictures.ask(i);
  pictures.encoder->gate.wait_inside(1);
  pictures.encoder->gate.open();
}

}  // namespace
}  // namespace chasqui
