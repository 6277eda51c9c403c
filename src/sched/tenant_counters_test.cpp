#include "sched/tenant_counters.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr Tenant kAnn{1, 1};
constexpr Tenant kBob{2, 1};
constexpr Tenant kEva{3, 1};

TEST(TenantCounters, ATokenCostsMoreThanARowOfAPrompt) {
  TenantCounters counters;
  counters.join(kAnn);
  counters.join(kBob);
  counters.charge_prompt(kAnn, 10);
  for (int i = 0; i < 10; ++i) counters.charge_token(kBob);
  EXPECT_EQ(counters.of(kAnn), 10);
  EXPECT_GT(counters.of(kBob), counters.of(kAnn));
}

TEST(TenantCounters, TwiceTheWeightIsHalfThePrice) {
  TenantCounters counters;
  const Tenant heavy{2, 2};
  counters.join(kAnn);
  counters.join(heavy);
  counters.charge_prompt(kAnn, 100);
  counters.charge_prompt(heavy, 100);
  EXPECT_EQ(counters.of(heavy) * 2, counters.of(kAnn));
}

TEST(TenantCounters, TimeAwayEarnsNoCredit) {
  TenantCounters counters;
  counters.join(kAnn);
  counters.join(kBob);
  counters.charge_prompt(kBob, 10);
  counters.leave(kBob);
  counters.charge_prompt(kAnn, 1000);
  counters.join(kEva);
  counters.charge_prompt(kEva, 5000);
  counters.join(kBob);
  EXPECT_EQ(counters.of(kBob), 1000) << "as much as the least served of those who stayed";
}

TEST(TenantCounters, LeavingAndComingBackForgivesNothing) {
  TenantCounters counters;
  counters.join(kAnn);
  counters.join(kBob);
  counters.charge_prompt(kAnn, 1000);
  counters.leave(kAnn);
  counters.join(kAnn);
  EXPECT_EQ(counters.of(kAnn), 1000);
  EXPECT_EQ(counters.of(kBob), 0);
}

TEST(TenantCounters, OneThatStaysIsNotLifted) {
  TenantCounters counters;
  counters.join(kAnn);
  counters.join(kBob);
  counters.charge_prompt(kBob, 1000);
  counters.join(kAnn);  // a second request
  EXPECT_EQ(counters.of(kAnn), 0);
  counters.leave(kAnn);
  counters.join(kAnn);
  EXPECT_EQ(counters.of(kAnn), 0) << "one of its requests was there all the time";
}

TEST(TenantCounters, AfterAQuietTimeEverybodyStartsAlike) {
  TenantCounters counters;
  counters.join(kAnn);
  counters.charge_prompt(kAnn, 1000);
  counters.leave(kAnn);
  counters.join(kBob);
  counters.join(kAnn);
  EXPECT_EQ(counters.of(kAnn), counters.of(kBob));
}

TEST(TenantCounters, OneThatIsNotKnownHasWhatANewOneWouldGet) {
  TenantCounters counters;
  counters.join(kAnn);
  counters.charge_prompt(kAnn, 70);
  counters.leave(kAnn);
  EXPECT_EQ(counters.of(kEva), 70);
}

TEST(TenantCounters, TheTableIsBoundedHoweverManyTenantsCome) {
  TenantCounters counters;
  counters.join(kAnn);  // always there
  bool forgotten = false;
  for (std::uint32_t id = 100; id < 10'000; ++id) {
    const Tenant tenant{id, 1};
    counters.join(tenant);
    counters.charge_prompt(tenant, 3);
    counters.charge_prompt(kAnn, 3);
    counters.leave(tenant);
    ASSERT_LE(counters.size(), 1026u);
    forgotten |= id > 1000 && counters.size() == 2;
  }
  EXPECT_TRUE(forgotten) << "all whose counter says nothing any more go together";
}

TEST(TenantCounters, NamesThatClientsMakeUpDoNotFillTheTableWithDebts) {
  TenantCounters counters;
  counters.join(kAnn);  // never served: all who were have had more than others
  for (std::uint32_t id = 100; id < 10'000; ++id) {
    const Tenant tenant{id, 1};
    counters.join(tenant);
    counters.charge_prompt(tenant, 3);
    counters.leave(tenant);
    ASSERT_LE(counters.size(), 1026u);
  }
  EXPECT_EQ(counters.of(kAnn), 0);
}

TEST(TenantCountersDeathTest, WhoLeavesHasJoined) {
  TenantCounters counters;
  EXPECT_DEATH(counters.leave(kAnn), "had not joined");
  EXPECT_DEATH(counters.charge_token(kAnn), "check failed");
  counters.join(kAnn);
  counters.leave(kAnn);
  EXPECT_DEATH(counters.leave(kAnn), "had not joined");
}

}  // namespace
}  // namespace chasqui
