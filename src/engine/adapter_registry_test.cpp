// Adapters that come and go: what lists and sets that were made before still have, and when a place is free again.
#include "engine/adapter_registry.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

AdapterInfo adapter(const std::string& name, std::int32_t place, std::uint64_t contents, std::uint32_t version = 0) {
  AdapterInfo info;
  info.name = name;
  info.place = place;
  info.contents = contents;
  info.version = version;
  info.at_run_time = version > 0;
  return info;
}

std::vector<AdapterInfo> two() { return {adapter("one", 0, 11), adapter("two", 1, 22)}; }

AdapterSetPtr only(const AdapterListPtr& list, std::string_view name) {
  std::vector<float> scales(list->size());
  scales[*list->find(name)] = 1;
  return list->set_of(scales);
}

TEST(AdapterRegistry, AListStaysAsItIs) {
  AdapterRegistry registry(two(), true);
  const AdapterListPtr before = registry.list();
  registry.add(adapter("three", 2, 33, 1));
  EXPECT_TRUE(registry.remove("one"));
  EXPECT_EQ(before->names(), "one and two");
  EXPECT_EQ(registry.list()->names(), "two and three");
  EXPECT_FALSE(registry.remove("one"));
}

TEST(AdapterRegistry, APlaceIsFreeWhenTheLastListAndTheLastSetHaveGone) {
  AdapterRegistry registry(two(), true);
  AdapterListPtr list = registry.list();
  AdapterSetPtr set = only(list, "one");
  const AdapterSetPtr remembered = without_leases(set);
  EXPECT_TRUE(registry.remove("one"));
  EXPECT_EQ(registry.leaving(), std::vector<std::int32_t>{0});
  EXPECT_TRUE(registry.take_ended().empty());
  list.reset();
  EXPECT_TRUE(registry.take_ended().empty()) << "a request has it";
  set.reset();
  EXPECT_EQ(registry.take_ended(), std::vector<std::int32_t>{0});
  EXPECT_TRUE(registry.take_ended().empty()) << "each is told once";
  EXPECT_TRUE(registry.leaving().empty());
}

TEST(AdapterRegistry, AnotherOneInAPlaceIsAnotherOne) {
  AdapterRegistry registry({}, true);
  registry.add(adapter("tone", 0, 7, 1));
  const AdapterSetPtr before = only(registry.list(), "tone");
  registry.add(adapter("tone", 1, 8, 2));  // in the place of that: it takes its name
  const AdapterSetPtr changed = only(registry.list(), "tone");
  EXPECT_EQ(registry.list()->size(), 1u);
  EXPECT_FALSE(same_adapters(before.get(), changed.get()));
  EXPECT_NE(before->id, changed->id) << "nothing that was computed with one is found by the other";
  EXPECT_TRUE(registry.remove("tone"));
  registry.add(adapter("tone", 0, 7, 3));
  const AdapterSetPtr again = only(registry.list(), "tone");
  EXPECT_FALSE(same_adapters(before.get(), again.get())) << "the context has to be told";
  EXPECT_EQ(before->id, again->id) << "what it computed is as good as before";
}

TEST(AdapterRegistry, StandingScalesAreOfTheAdaptersThatWereMeant) {
  AdapterRegistry registry(two(), true);
  const AdapterListPtr meant = registry.list();
  registry.remove("one");
  registry.add(adapter("three", 0, 33, 1));  // in the place of the first one
  const float scales[] = {0.25f, 0.5f};
  registry.set_standing_scales(*meant, scales);
  EXPECT_EQ(registry.list()->standing_scales(), (std::vector<float>{0, 0.5f}));
}

TEST(AdapterRegistry, WhatIsLoadedAtRunTimeChangesNoOtherRequest) {
  AdapterRegistry registry(two(), true);
  const AdapterSetPtr before = registry.list()->standing();
  registry.add(adapter("three", 2, 33, 1));
  EXPECT_TRUE(same_adapters(before.get(), registry.list()->standing().get()));
  EXPECT_EQ(AdapterRegistry({adapter("three", 0, 33, 1)}, true).list()->standing(), nullptr) << "in the next version";
}

TEST(AdapterRegistry, TheNextVersionOfTheModelKnowsWhatWasSaid) {
  AdapterRegistry before(two(), false);
  const float scales[] = {0, 0.5f};
  before.set_standing_scales(*before.list(), scales);
  before.remove("one");
  AdapterRegistry next({adapter("two", 0, 22)}, true);
  next.take_over(*before.list());
  EXPECT_EQ(next.list()->standing_scales(), std::vector<float>{0.5f});
  EXPECT_TRUE(next.list()->was_unloaded("one"));
  next.add(adapter("one", 1, 11, 1));
  EXPECT_FALSE(next.list()->was_unloaded("one"));
}

TEST(AdapterRegistry, RemembersABoundedNumberOfNames) {
  AdapterRegistry registry({}, true);
  for (int i = 0; i < 1000; ++i) {
    registry.add(adapter("a" + std::to_string(i), 0, 1, static_cast<std::uint32_t>(i) + 1));
    registry.remove("a" + std::to_string(i));
    EXPECT_EQ(registry.take_ended().size(), 1u);
  }
  EXPECT_EQ(registry.list()->unloaded().size(), 256u);
  EXPECT_TRUE(registry.list()->was_unloaded("a999"));
  EXPECT_FALSE(registry.list()->was_unloaded("a0"));
}

}  // namespace
}  // namespace chasqui
