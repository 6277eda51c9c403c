#include "core/media.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "core/fake_media.h"

namespace chasqui {
namespace {

Result<RequestPtr> media_request(RequestDraft draft, RequestLimits limits = test_limits()) {
  limits.rows_max = 16;
  return make_request(RequestId{1}, std::move(draft), limits, TimePoint{});
}

TEST(Media, NumbersOfPlacesAreBelowAllOthersAndSeldomAlike) {
  std::set<Token> seen;
  for (int content = 0; content < 100; ++content) {
    Checksum identity{};
    identity[0] = static_cast<std::byte>(content);
    for (TokenCount place = 0; place < 100; ++place) seen.insert(media_token(identity, place));
  }
  EXPECT_LT(*seen.rbegin(), kNoToken);
  EXPECT_GE(seen.size(), 9999u);
}

TEST(Media, NumbersAreTheSameInEveryProcess) {
  EXPECT_EQ(media_token(Checksum{}, 0), media_token(Checksum{}, 0));
  EXPECT_NE(media_token(Checksum{}, 0), media_token(Checksum{}, 1));
  Checksum other{};
  other[15] = std::byte{1};
  EXPECT_NE(media_token(Checksum{}, 0), media_token(other, 0));
}

TEST(Media, FindsTheUnitOfAPosition) {
  const MediaUnitsPtr units = FakePrompt().text(5).picture(3).text(2).picture(4, 2).draft().media;
  EXPECT_EQ(unit_at(units, 4), nullptr);
  EXPECT_EQ(unit_at(units, 5), &(*units)[0]);
  EXPECT_EQ(unit_at(units, 7), &(*units)[0]);
  EXPECT_EQ(unit_at(units, 8), nullptr);
  EXPECT_EQ(unit_at(units, 13), &(*units)[1]);
  EXPECT_EQ(unit_at(units, 14), nullptr);
  EXPECT_EQ(unit_from(units, 0), &(*units)[0]);
  EXPECT_EQ(unit_from(units, 8), &(*units)[1]);
  EXPECT_EQ(unit_from(units, 14), nullptr);
  EXPECT_EQ(unit_at(nullptr, 0), nullptr);
}

TEST(Media, APartOfAUnitIsNoneOfIt) {
  const MediaUnitsPtr units = FakePrompt().text(5).picture(3).text(2).draft().media;
  const std::vector<TokenCount> expected = {0, 1, 2, 3, 4, 5, 5, 5, 8, 9, 10};
  for (TokenCount tokens = 0; tokens <= 10; ++tokens) {
    EXPECT_EQ(whole_units(units, tokens), expected[static_cast<std::size_t>(tokens)]);
    EXPECT_EQ(whole_units(nullptr, tokens), tokens);
  }
}

TEST(Media, ARequestTakesUnitsThatFitItsPrompt) {
  const auto request = media_request(FakePrompt().text(5).picture(20).text(2).picture(1, 2).draft());
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ((*request)->media->size(), 2u);
}

TEST(Media, ARequestRefusesNumbersThatNoUnitHas) {
  const RequestDraft good = FakePrompt().text(5).picture(3).text(2).draft();
  const auto refuses = [](RequestDraft draft) {
    const auto request = media_request(std::move(draft));
    return !request && request.error().field == "prompt";
  };
  RequestDraft without = good;
  without.media.reset();
  EXPECT_TRUE(refuses(without));
  RequestDraft moved = good;
  std::rotate(moved.prompt.begin(), moved.prompt.begin() + 1, moved.prompt.end());
  EXPECT_TRUE(refuses(moved));
  RequestDraft shorter = good;
  shorter.prompt.resize(7);
  EXPECT_TRUE(refuses(shorter));
  RequestDraft overlapping = good;
  MediaUnits twice = *good.media;
  twice.push_back(twice.front());
  overlapping.media = std::make_shared<MediaUnits>(twice);
  EXPECT_TRUE(refuses(overlapping));
  RequestDraft unknown = good;
  unknown.prompt[0] = 1000;
  EXPECT_TRUE(refuses(unknown));
}

TEST(Media, AUnitWhosePositionsSeeEachOtherFitsABatch) {
  EXPECT_TRUE(media_request(FakePrompt().text(5).picture(16, 1, false).text(2).draft()));
  const auto refused = media_request(FakePrompt().text(5).picture(17, 1, false).text(2).draft());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("at most 16"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(media_request(FakePrompt().text(5).picture(17, 1, true).text(2).draft()));
}

TEST(Media, LikelihoodsOfSuchPromptsAreNotTold) {
  RequestDraft draft = FakePrompt().text(5).picture(3).text(2).draft();
  draft.tell_prompt = true;
  const auto refused = media_request(std::move(draft));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "logprobs");
}

TEST(Media, CheckpointsAreWhereUnitsBegin) {
  RequestLimits limits = test_limits();
  limits.context = 1000;
  limits.checkpoint_every = 64;
  RequestDraft draft = FakePrompt().text(100).picture(200).text(100).draft();
  draft.boundaries = {150, 350};
  const auto request = media_request(std::move(draft), limits);
  ASSERT_TRUE(request);
  const std::vector<TokenCount>& stops = (*request)->checkpoints;
  EXPECT_TRUE(std::ranges::is_sorted(stops));
  EXPECT_EQ(std::ranges::adjacent_find(stops), stops.end());
  EXPECT_NE(std::ranges::find(stops, 100), stops.end());
  for (const TokenCount at : stops) EXPECT_EQ(whole_units((*request)->media, at), at);
}

TEST(Media, DeterministicChunksAreNotInsideUnits) {
  RequestLimits limits = test_limits();
  limits.context = 1000;
  RequestDraft draft = FakePrompt().text(100).picture(200).text(300).draft();
  draft.deterministic = true;
  const auto request = media_request(std::move(draft), limits);
  ASSERT_TRUE(request);
  EXPECT_EQ((*request)->checkpoints, (std::vector<TokenCount>{384, 512}));
  EXPECT_EQ((*request)->usable(299), 100) << "256 is inside the picture";
  EXPECT_EQ((*request)->usable(300), 100);
  EXPECT_EQ((*request)->usable(390), 384);
}

TEST(Media, UnitsFindTheirPlacesInAPrompt) {
  const RequestDraft draft = FakePrompt().text(3).picture(4).text(2).picture(4).picture(2).text(1).draft();
  MediaUnits units = *draft.media;
  for (MediaUnit& unit : units) unit.begin = 0;
  EXPECT_TRUE(place_units(units, draft.prompt));
  EXPECT_TRUE(std::ranges::equal(units, *draft.media, {}, &MediaUnit::begin, &MediaUnit::begin));
  const auto first = std::span(draft.prompt).first(9);
  EXPECT_FALSE(place_units(units, first)) << "too few";
  EXPECT_FALSE(place_units(units, std::span(draft.prompt).first(12))) << "a part of the second";
  MediaUnits fewer(units.begin(), units.begin() + 1);
  EXPECT_FALSE(place_units(fewer, draft.prompt));
  EXPECT_TRUE(place_units(fewer, first));
  units[1].identity[0] ^= std::byte{1};
  EXPECT_FALSE(place_units(units, draft.prompt)) << "other ones";
  MediaUnits none;
  EXPECT_TRUE(place_units(none, std::span(draft.prompt).first(3)));
  EXPECT_FALSE(place_units(none, draft.prompt));
}

TEST(Media, TheirContextIsNotShifted) {
  RequestLimits limits = test_limits();
  limits.shifts = true;
  limits.moves_text = true;
  limits.chunk_default = 8;
  const auto with = media_request(FakePrompt().text(5).picture(3).text(2).draft(), limits);
  const auto without = media_request(FakePrompt().text(10).draft(), limits);
  EXPECT_EQ((*with)->shift_at, 0);
  EXPECT_EQ((*with)->chunk, 0);
  EXPECT_GT((*without)->shift_at, 0);
  EXPECT_EQ((*without)->chunk, 8);
}

}  // namespace
}  // namespace chasqui
