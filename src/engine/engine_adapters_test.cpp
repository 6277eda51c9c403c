// Requests with different adapters in a whole engine; the simulated model CHECKs that no slot ever gets rows of another
// set, and what it says depends on the set.
#include <gtest/gtest.h>

#include "engine/fake_client.h"

namespace chasqui {
namespace {

AdapterSetPtr set_of(std::size_t adapter) {
  constexpr std::uint64_t kContents[] = {11, 22};
  std::vector<float> scales(2);
  scales[adapter] = 1;
  return make_adapter_set(scales, kContents);
}

std::function<void(RequestDraft&)> with(const AdapterSetPtr& adapters) {
  return [adapters](RequestDraft& draft) { draft.adapters = adapters; };
}

TEST(EngineAdapters, EachSetAnswersAsItDoesAlone) {
  ClientConfig config;
  config.slots = 6;
  config.engine.reuse.cache.bytes = 1 << 20;
  config.engine.adapters = {"one", "two"};
  FakeClient client(config);
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 24; ++i) {
    requests.push_back(client.submit(story(i % 4), 40, with(i % 3 == 0 ? nullptr : set_of(i % 3 == 1 ? 0 : 1))));
  }
  client.read_to_end();
  for (const RequestPtr& request : requests) EXPECT_EQ(client.of(request).text, answer_alone(*request).text);
  EXPECT_NE(client.of(requests[0]).text, client.of(requests[4]).text) << "the same question with another set";
  std::uint64_t steps = 0;
  for (const auto& each : client.engine.metrics().adapter_steps) steps += each.steps.value();
  EXPECT_EQ(steps, client.engine.metrics().decode_steps.value() + client.engine.metrics().prefill_steps.value());
  EXPECT_GT(client.engine.metrics().adapter_switches.value(), 0u);
}

TEST(EngineAdapters, TheCacheIsNotSharedBetweenSets) {
  ClientConfig config;
  config.engine.reuse.cache.bytes = 1 << 20;
  FakeClient client(config);
  const auto cached = [&](const AdapterSetPtr& adapters) {
    const RequestPtr request = client.submit(story(1), 8, with(adapters));
    client.read_to_end(request);
    EXPECT_EQ(client.of(request).text, answer_alone(*request).text);
    return client.of(request).last.usage.cached;
  };
  EXPECT_EQ(cached(nullptr), 0);
  EXPECT_EQ(cached(set_of(0)), 0);
  EXPECT_EQ(cached(set_of(1)), 0);
  EXPECT_GT(cached(nullptr), 10);
  EXPECT_GT(cached(set_of(0)), 10);
}

TEST(EngineAdapters, WhatATenantHasComputedIsForgottenOnDemand) {
  ClientConfig config;
  config.engine.reuse.cache.bytes = 1 << 20;
  FakeClient client(config);
  const auto cached = [&](std::uint32_t tenant) {
    const RequestPtr request = client.submit(story(1), 8, [&](RequestDraft& draft) { draft.tenant.id = tenant; });
    client.read_to_end(request);
    return client.of(request).last.usage.cached;
  };
  cached(1);
  cached(2);
  EXPECT_EQ(*client.engine.forget({.id = 1}), 1u);
  EXPECT_EQ(*client.engine.forget({.id = 1}), 0u);
  EXPECT_EQ(cached(1), 0);
  EXPECT_GT(cached(2), 10);
}

TEST(EngineSlots, ShowWhoRuns) {
  StepGate gate;
  ClientConfig config;
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr request = client.submit(story(1), 10);
  gate.allow(3);
  gate.wait_inside(4);  // three steps are done and shown
  const SlotUse use = client.engine.slot(SlotId{0});
  EXPECT_EQ(use.request, request->id);
  EXPECT_EQ(use.prompt, static_cast<TokenCount>(request->prompt.size()));
  EXPECT_GT(use.generated, 0);
  EXPECT_EQ(use.left, 10 - use.generated);
  EXPECT_EQ(client.engine.slot(SlotId{1}).request.value, 0u);
  gate.open();
  client.read_to_end();
}

TEST(EngineAdapters, AreGivenUpWithTheLastRequest) {
  FakeClient client;
  std::weak_ptr<int> held;
  {
    auto lease = std::make_shared<int>(0);
    held = lease;
    AdapterChoice choice{{0, 1.0f, 1}, 11, std::move(lease)};
    RequestPtr request = client.submit(story(1), 20, with(make_chosen_set({&choice, 1})));
    choice.lease.reset();
    client.read_to_end(request);
    EXPECT_FALSE(held.expired());
  }
  // The worker remembers the set whose turn it was last, and goes on with it.
  const AdapterChoice same{{0, 1.0f, 1}, 11, nullptr};
  client.read_to_end(client.submit(story(2), 1, with(make_chosen_set({&same, 1}))));
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace chasqui
