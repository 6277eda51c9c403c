// What slots have left, saved and brought back by their numbers, in a whole engine: real threads, a simulated model.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/fake_workers.h"

namespace chasqui {
namespace {

const std::string kStory = chat("tell a story " + std::string(100, '.'));

ClientConfig noting(ClientConfig config, StepClock& clock) {
  config.clock = &clock;  // a step takes a millisecond, and a copy no time
  config.engine.reuse.cache.bytes = 1 << 20;
  config.engine.reuse.notes_slots = true;
  return config;
}

TokenCount cached(FakeClient& client, const std::string& prompt, const Tenant& tenant = {}, std::int32_t label = -1) {
  const RequestPtr request = client.submit(prompt, 5, [&](RequestDraft& draft) {
    draft.tenant = tenant;
    draft.slot_label = label;
  });
  client.read_to_end(request);
  expect_as_alone(client, request);
  return client.of(request).last.usage.cached;
}

TEST(EngineSlots, WhatASlotHasLeftIsWhatItsLastSequenceComputed) {
  StepClock clock;
  FakeClient client(noting({}, clock));
  EXPECT_EQ(client.engine.copy_of_slot(SlotId{0}, {}).kv, nullptr) << "the slot is empty";
  cached(client, kStory);
  const SlotCopy copy = client.engine.copy_of_slot(SlotId{0}, {});
  ASSERT_NE(copy.kv, nullptr);
  EXPECT_EQ(copy.tokens.size(), static_cast<std::size_t>(copy.kv->tokens()));
  EXPECT_GT(copy.tokens.size(), 100u);
  EXPECT_EQ(client.engine.copy_of_slot(SlotId{1}, {}).kv, nullptr);
}

TEST(EngineSlots, ARequestThatNamesASlotIsNotedThere) {
  StepClock clock;
  FakeClient client(noting({}, clock));
  cached(client, kStory, {}, 3);
  EXPECT_EQ(client.engine.copy_of_slot(SlotId{0}, {}).kv, nullptr);
  EXPECT_NE(client.engine.copy_of_slot(SlotId{3}, {}).kv, nullptr);
}

TEST(EngineSlots, WhatIsAdoptedByALabelLeavesTheNotesOfSlots) {
  StepClock clock;
  ClientConfig config;
  config.workers = 2;
  FakeClient client(noting(config, clock));
  constexpr std::int32_t kLabel = 1 << 20;  // above all slots
  cached(client, kStory);
  SlotCopy copy = client.engine.copy_of_slot(SlotId{0}, {});
  ASSERT_NE(copy.kv, nullptr);
  FakeClient other(noting(config, clock));
  ASSERT_TRUE(other.engine.adopt_slot(SlotId{kLabel}, {}, std::move(copy)));
  EXPECT_EQ(other.engine.copy_of_slot(SlotId{0}, {}).kv, nullptr);
  EXPECT_NE(other.engine.copy_of_slot(SlotId{kLabel}, {}).kv, nullptr);
  EXPECT_GT(cached(other, kStory), 100);
}

TEST(EngineSlots, NoTenantGetsWhatAnotherHasLeft) {
  StepClock clock;
  FakeClient client(noting({}, clock));
  const Tenant alice{1, 1, 11}, bob{2, 1, 12};
  cached(client, kStory, alice);
  EXPECT_EQ(client.engine.copy_of_slot(SlotId{0}, bob).kv, nullptr);
  EXPECT_EQ(client.engine.copy_of_slot(SlotId{0}, {}).kv, nullptr);
  SlotCopy copy = client.engine.copy_of_slot(SlotId{0}, alice);
  ASSERT_NE(copy.kv, nullptr);

  FakeClient again(noting({}, clock));
  ASSERT_TRUE(again.engine.adopt_slot(SlotId{0}, alice, std::move(copy)));
  EXPECT_EQ(cached(again, kStory, bob), 0);
  EXPECT_GT(cached(again, kStory, alice), 100);
}

TEST(EngineSlots, WhatIsForgottenIsNotSaved) {
  StepClock clock;
  FakeClient client(noting({}, clock));
  cached(client, kStory);
  EXPECT_GT(*client.engine.forget({}), 0u);
  EXPECT_EQ(client.engine.copy_of_slot(SlotId{0}, {}).kv, nullptr);
}

TEST(EngineSlots, WhatDoesNotFitIsRefusedAndLeavesNothing) {
  StepClock clock;
  FakeClient client(noting({}, clock));
  cached(client, kStory);
  SlotCopy copy = client.engine.copy_of_slot(SlotId{0}, {});
  ASSERT_NE(copy.kv, nullptr);
  ClientConfig small = noting({}, clock);
  small.engine.reuse.cache.bytes = copy.kv->size() - 1;
  FakeClient again(small);
  EXPECT_FALSE(again.engine.adopt_slot(SlotId{0}, {}, std::move(copy)));
  EXPECT_EQ(again.engine.copy_of_slot(SlotId{0}, {}).kv, nullptr);
}

TEST(EngineSlots, OfSeveralWorkersTheNewestAnswersAndPromptsGoWhereTheCopyWasBrought) {
  StepClock clock;
  FakeClient client(noting(workers(3, 2), clock));
  for (int i = 0; i < 6; ++i) cached(client, chat("other " + std::to_string(i)), {}, 4);
  cached(client, kStory, {}, 4);
  SlotCopy copy = client.engine.copy_of_slot(SlotId{4}, {});
  ASSERT_NE(copy.kv, nullptr);
  EXPECT_GT(copy.tokens.size(), 100u) << "of all that said so the last";

  FakeClient again(noting(workers(3, 2), clock));
  ASSERT_TRUE(again.engine.adopt_slot(SlotId{4}, {}, std::move(copy)));
  for (int i = 0; i < 4; ++i) EXPECT_GT(cached(again, kStory), 100) << i;
  EXPECT_EQ(ended(again, 2), 4u) << "slots 4 and 5 are the third worker's";
  EXPECT_NE(again.engine.copy_of_slot(SlotId{4}, {}).kv, nullptr);
}

}  // namespace
}  // namespace chasqui
