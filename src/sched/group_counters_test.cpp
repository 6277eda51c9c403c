#include "sched/group_counters.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

RequestPtr request(std::uint64_t id, std::uint32_t tenant, std::uint32_t group) {
  RequestDraft draft;
  draft.prompt = test_prompt(10, id);
  draft.tenant.id = tenant;
  draft.group = group;
  return test_request(id, std::move(draft), test_limits(), TimePoint{});
}

TEST(GroupCounters, CountForEachGroupOfATenantOnceThereAreSeveral) {
  GroupCounters groups;
  const RequestPtr a = request(1, 1, 7);
  const RequestPtr b = request(2, 1, 8);
  groups.join(*a);
  groups.charge_prompt(*a, 100, 0);
  EXPECT_EQ(groups.of(*a), 0) << "it shares with no other group";
  groups.join(*b);
  EXPECT_EQ(groups.of(*a), groups.of(*b)) << "time away earns no credit";
  groups.charge_token(*a);
  EXPECT_GT(groups.of(*a), groups.of(*b));
}

TEST(GroupCounters, AreOfOneTenant) {
  GroupCounters groups;
  const RequestPtr a = request(1, 1, 7);
  const RequestPtr other = request(2, 2, 7);
  const RequestPtr more = request(3, 2, 8);
  for (const RequestPtr& each : {a, other, more}) groups.join(*each);
  groups.charge_prompt(*a, 1000, 0);
  groups.charge_prompt(*other, 10, 0);
  EXPECT_EQ(groups.of(*a), 0);
  EXPECT_EQ(groups.of(*other) - groups.of(*more), 10);
}

TEST(GroupCounters, AreForgottenWithTheLastRequestOfATenant) {
  GroupCounters groups;
  const RequestPtr a = request(1, 1, 7);
  const RequestPtr b = request(2, 1, 8);
  groups.join(*a);
  groups.join(*b);
  groups.charge_prompt(*a, 100, 0);
  groups.leave(*a);
  groups.leave(*b);
  EXPECT_EQ(groups.of(*a), 0);
}

}  // namespace
}  // namespace chasqui
