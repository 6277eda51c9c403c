// Pictures are encoded beside the steps of a worker, and not for clients that have left.
#include "engine/media_encodings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

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
    std::uint64_t content = 0;
    std::memcpy(&content, unit.identity.data(), sizeof content);
    return Encoding{std::make_shared<EncodedMedia>(), encoded_.insert(content).second};
  }
  void forget(std::uint32_t tenant) override { forgotten = tenant; }

  StepGate gate;
  std::atomic<bool> fails{false};
  std::atomic<std::uint32_t> forgotten{0};

 private:
  std::set<std::uint64_t> encoded_;  // one worker's thread only
};

struct Pictures {
  explicit Pictures(std::int32_t slots = 4) : client(config(slots)) {}
  ClientConfig config(std::int32_t slots) {
    ClientConfig config;
    config.slots = slots;
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

TEST(MediaEncodings, AnEngineEndsWithWhatIsOrdered) {
  Pictures pictures;
  for (std::uint64_t i = 0; i < 4; ++i) pictures.ask(i);
  pictures.encoder->gate.wait_inside(1);
  pictures.encoder->gate.open();
}

}  // namespace
}  // namespace chasqui
