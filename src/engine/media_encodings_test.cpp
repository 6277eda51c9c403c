// Pictures are encoded beside the steps of a worker, and not for clients that have left.
#include "engine/media_encodings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "base/shared_lock.h"
#include "cache/fake_folder.h"
#include "core/fake_media.h"
#include "engine/fake_client.h"

namespace chasqui {
namespace {

// Encodes nothing until it is let, and then what it is asked for. Any thread.
class HeldEncoder final : public MediaEncoder {
 public:
  Result<Encoding> encode(const MediaUnit& unit, std::uint32_t tenant) override {
    if (EncodedMediaPtr kept = find(unit, tenant)) return Encoding{std::move(kept), false};
    gate.pass();
    if (fails) return Error{ErrorCode::model_failure, "the projector failed", ""};
    auto rows = std::make_shared<EncodedMedia>();
    rows->width = kWidth;
    rows->values.assign(kWidth * static_cast<std::size_t>(unit.positions), 0.5F);
    keep(unit, tenant, rows);
    return Encoding{rows, true};
  }
  EncodedMediaPtr find(const MediaUnit& unit, std::uint32_t tenant) override {
    const SharedLock::Reading others(lock_);
    const auto kept = kept_.find({tenant, content_of(unit)});
    return kept == kept_.end() ? nullptr : kept->second;
  }
  bool keep(const MediaUnit& unit, std::uint32_t tenant, EncodedMediaPtr rows) override {
    if (rows->width != kWidth) return false;
    const SharedLock::Writing alone(lock_);
    kept_[{tenant, content_of(unit)}] = std::move(rows);
    return true;
  }
  void forget(std::uint32_t tenant) override {
    forgotten = tenant;
    const SharedLock::Writing alone(lock_);
    std::erase_if(kept_, [tenant](const auto& each) { return each.first.first == tenant; });
  }

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

  SharedLock lock_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, EncodedMediaPtr> kept_;
};

struct Pictures {
  explicit Pictures(std::int32_t slots = 4) : Pictures(with(nullptr, slots)) {}
  explicit Pictures(ClientConfig config) : client(seeing(std::move(config))) {}
  static ClientConfig with(std::shared_ptr<EncodingFolder> files, std::int32_t slots = 4) {
    ClientConfig config;
    config.slots = slots;
    config.engine.encodings = std::move(files);
    return config;
  }
  ClientConfig seeing(ClientConfig config) {
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

std::shared_ptr<EncodingFolder> files_in(const FakeFolder& folder) {
  return EncodingFolder::open(folder.path() + "/encodings", 1 << 20).value();
}

std::vector<std::string> names_in(const FakeFolder& folder) {
  auto names = folder.names("encodings");
  std::erase(names, "lock");
  return names;
}

TEST(MediaEncodings, WhatIsInAFileIsNotEncodedAgain) {
  const FakeFolder folder;
  {
    Pictures before(Pictures::with(files_in(folder)));
    before.encoder->gate.open();
    before.client.read_to_end(before.ask(1));
  }
  Pictures after(Pictures::with(files_in(folder)));
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
  const std::shared_ptr<EncodingFolder> files = files_in(folder);
  const RequestDraft prompt = FakePrompt().picture(20, 1).draft();
  const MediaUnit& unit = prompt.media->front();
  files->write(0, unit, std::vector<float>(20 * 7));
  ASSERT_EQ(files->read(0, unit).size(), 20u * 7);
  {
    Pictures pictures(Pictures::with(files));
    pictures.encoder->gate.open();
    pictures.client.read_to_end(pictures.ask(1));
    EXPECT_EQ(pictures.encoded(), 1u);
  }
  EXPECT_EQ(files->read(0, unit).size(), 20u * 8) << "it is replaced";
}

TEST(MediaEncodings, WhereTenantsShareOneReadsWhatAnotherHasHadEncoded) {
  const FakeFolder folder;
  ClientConfig config = Pictures::with(files_in(folder));
  config.engine.reuse.shared_by_tenants = true;
  const auto as = [](std::uint32_t id) {
    return [id](RequestDraft& draft) { draft.tenant = {.id = id, .lasting = 100 + id}; };
  };
  {
    Pictures pictures(config);
    pictures.encoder->gate.open();
    pictures.client.read_to_end(pictures.ask(1, as(7)));
    EXPECT_EQ(pictures.encoded(), 1u) << "beside the step, and not again in it";
  }
  Pictures pictures(config);
  pictures.encoder->gate.open();
  pictures.client.read_to_end(pictures.ask(1, as(8)));
  EXPECT_EQ(pictures.encoded(), 0u);
}

TEST(MediaEncodings, WhatATenantHasErasedIsInNoFile) {
  const FakeFolder folder;
  ClientConfig config = Pictures::with(files_in(folder));
  config.workers = 2;
  const auto as = [](std::uint32_t id) {
    return [id](RequestDraft& draft) { draft.tenant = {.id = id, .lasting = 100 + id}; };
  };
  {
    Pictures pictures(config);
    pictures.encoder->gate.open();
    for (std::uint64_t i = 1; i <= 6; ++i) pictures.ask(i, as(7));
    pictures.ask(7, as(8));
    pictures.client.read_to_end();
  }
  ASSERT_EQ(names_in(folder).size(), 7u);
  Pictures pictures(config);
  pictures.encoder->gate.open();
  pictures.ask(8, as(7));  // perhaps still to be written
  pictures.client.read_to_end();
  const auto erased = pictures.client.engine.forget({.id = 7, .lasting = 107});
  ASSERT_TRUE(erased);
  const auto names = names_in(folder);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(names.front().starts_with("000000000000006c")) << names.front();
}

TEST(MediaEncodings, WithoutAnEncoderFilesAreErased) {
  const FakeFolder folder;
  const std::shared_ptr<EncodingFolder> files = files_in(folder);
  files->write(107, FakePrompt().picture(20, 1).draft().media->front(), std::vector<float>(20 * 8));
  ClientConfig config = Pictures::with(files);
  FakeClient blind(config);
  const auto erased = blind.engine.forget({.id = 7, .lasting = 107});
  ASSERT_TRUE(erased);
  EXPECT_EQ(*erased, 1u);
  EXPECT_TRUE(names_in(folder).empty());
}

TEST(MediaEncodings, AnEraseThatLeavesAFileFails) {
  const FakeFolder folder;
  const std::shared_ptr<EncodingFolder> files = files_in(folder);
  files->write(107, FakePrompt().picture(20, 1).draft().media->front(), std::vector<float>(20 * 8));
  const auto file = folder / ("encodings/" + names_in(folder).at(0));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);  // nothing that unlink() removes
  Pictures pictures(Pictures::with(files));
  const auto erased = pictures.client.engine.forget({.id = 7, .lasting = 107});
  ASSERT_FALSE(erased);
  EXPECT_EQ(erased.error().code, ErrorCode::unavailable);
}

TEST(MediaEncodings, AnErasureDoesNotWaitForPicturesOfOthers) {
  const FakeFolder folder;
  Pictures pictures(Pictures::with(files_in(folder)));
  pictures.ask(1);
  pictures.encoder->gate.wait_inside(1);
  pictures.ask(2);
  std::atomic<bool> erased{false};
  pictures.client.engine.forget({.id = 7, .lasting = 107}, [&](const Result<std::size_t>&) { erased.store(true); });
  pictures.client.read_to_end(pictures.client.submit("go on", 3, endless));  // the worker has it
  pictures.encoder->gate.allow(1);
  pictures.encoder->gate.wait_inside(2);
  EXPECT_TRUE(erased.load()) << "before the second is encoded";
  pictures.encoder->gate.open();
  pictures.client.read_to_end();
}

TEST(MediaEncodings, AnEngineEndsWithWhatIsOrdered) {
  Pictures pictures;
  for (std::uint64_t i = 0; i < 4; ++i) pictures.ask(i);
  pictures.encoder->gate.wait_inside(1);
  pictures.encoder->gate.open();
}

}  // namespace
}  // namespace chasqui
